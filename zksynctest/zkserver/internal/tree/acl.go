package tree

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// Identity is one of the names a connection goes by.
type Identity struct{ Scheme, ID string }

var SuperUser = []Identity{{"super", ""}}

// Allowed reports whether one of ids has one of the permissions in need. No list at
// all is an open door.
func Allowed(list []jute.ACL, need int32, ids []Identity) bool {
	if len(list) == 0 {
		return true
	}
	for _, a := range list {
		if a.Perms&need != 0 && a.Scheme == "world" && a.ID == "anyone" {
			return true
		}
	}
	for _, who := range ids {
		if who.Scheme == "super" {
			return true
		}
		for _, a := range list {
			if a.Perms&need == 0 || a.Scheme != who.Scheme {
				continue
			}
			if a.ID == who.ID && a.Scheme != "ip" || a.Scheme == "ip" && ipMatches(who.ID, a.ID) {
				return true
			}
			// A real server has the SASL user super match every entry of the scheme sasl.
			if a.Scheme == "sasl" && who.ID == "super" {
				return true
			}
		}
	}
	return false
}

// fixACL is the list as it is stored: without duplicates, and with the scheme auth
// replaced by the identities the connection has proved. A server that offers no SASL
// does not know the scheme sasl.
func (s *Store) fixACL(list []jute.ACL, ids []Identity) ([]jute.ACL, bool) {
	if len(list) == 1 && list[0] == jute.OpenACL[0] {
		return jute.OpenACL, true
	}
	var fixed []jute.ACL
	for i, a := range list {
		if slices.Contains(list[:i], a) {
			continue
		}
		switch {
		case a.Scheme == "world" && a.ID == "anyone":
			fixed = append(fixed, a)
		case a.Scheme == "auth":
			proved := false
			for _, who := range ids {
				if who.Scheme == "digest" || who.Scheme == "sasl" {
					fixed = append(fixed, jute.ACL{Perms: a.Perms, Scheme: who.Scheme, ID: who.ID})
					proved = true
				}
			}
			if !proved {
				return nil, false
			}
		case a.Scheme == "digest" && validDigest(a.ID), a.Scheme == "ip" && validIP(a.ID),
			a.Scheme == "sasl" && s.Rules.SASL && validPrincipal(a.ID):
			fixed = append(fixed, a)
		default:
			return nil, false
		}
	}
	return fixed, len(fixed) > 0
}

// MaskedACL hides the password hashes from a reader without the admin permission.
func MaskedACL(list []jute.ACL) []jute.ACL {
	masked := slices.Clone(list)
	for i, a := range masked {
		if a.Scheme == "digest" {
			user, _, _ := strings.Cut(a.ID, ":")
			masked[i].ID = user + ":x"
		}
	}
	return masked
}

// validDigest wants two parts. Java's split forgets empty parts at the end, so
// that "a:b:" has two as well and "a:" has one.
func validDigest(id string) bool {
	return strings.Count(strings.TrimRight(id, ":"), ":") == 1
}

// parseIP reads an address with an optional number of significant bits.
func parseIP(id string) (addr netip.Addr, bits int, ok bool) {
	host, length, masked := strings.Cut(id, "/")
	if addr, ok = parseAddr(host); !ok {
		return addr, 0, false
	}
	bits = addr.BitLen()
	if masked {
		n, err := strconv.Atoi(length)
		if err != nil || n < 0 || n > bits {
			return addr, 0, false
		}
		bits = n
	}
	return addr, bits, true
}

// parseAddr takes leading zeros and a plus sign, which netip does not, and reads them as decimal.
func parseAddr(host string) (netip.Addr, bool) {
	if strings.Contains(host, ":") {
		addr, err := netip.ParseAddr(host)
		return addr, err == nil && addr.Zone() == ""
	}
	var b [4]byte
	parts := strings.Split(host, ".")
	if len(parts) != len(b) {
		return netip.Addr{}, false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(strings.TrimPrefix(part, "+"), 10, 8)
		if err != nil {
			return netip.Addr{}, false
		}
		b[i] = byte(n)
	}
	return netip.AddrFrom4(b), true
}

func validIP(id string) bool {
	_, _, ok := parseIP(id)
	return ok
}

func ipMatches(remote, id string) bool {
	addr, bits, ok := parseIP(id)
	who, err := netip.ParseAddr(remote)
	if !ok || err != nil || who.BitLen() != addr.BitLen() {
		return false
	}
	return netip.PrefixFrom(addr, bits).Masked().Contains(who)
}

// validPrincipal accepts a name as Java's KerberosName does: any name without a realm, or
// a name with at most one host in front of its realm.
func validPrincipal(id string) bool {
	return !strings.Contains(id, "@") || saslPrincipal.MatchString(id)
}

var saslPrincipal = regexp.MustCompile(`^[^/@]*(/[^/@]*)?@[^/@]*$`)
