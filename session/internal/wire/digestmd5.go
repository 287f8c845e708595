package wire

import (
	"crypto/md5" //nolint:gosec // the mechanism is defined by it
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// saslServer is the name of every ZooKeeper server in DIGEST-MD5. The Java client uses
// the same name.
const saslServer = "zk-sasl-md5"

const saslURI = "zookeeper/" + saslServer

// A DigestMD5 is one exchange of the SASL mechanism DIGEST-MD5 (RFC 2831): the server
// sends a challenge, the client its response, and the server its own.
type DigestMD5 struct {
	User, Password string
	Cnonce         string // random
	expected       string // the proof of the server; empty before the response
}

// Next answers the challenge of the server, and then checks the server's own proof.
func (e *DigestMD5) Next(challenge []byte) (response []byte, done bool, err error) {
	directives, err := parseDirectives(string(challenge))
	if err != nil {
		return nil, false, fmt.Errorf("DIGEST-MD5: %w", err)
	}
	if e.expected != "" {
		if subtle.ConstantTimeCompare([]byte(directives["rspauth"]), []byte(e.expected)) != 1 {
			return nil, false, errors.New("DIGEST-MD5: the server does not know the password")
		}
		return nil, true, nil
	}
	nonce, realm := directives["nonce"], directives["realm"]
	switch {
	case nonce == "":
		return nil, false, errors.New("DIGEST-MD5: the challenge has no nonce")
	case directives["algorithm"] != "md5-sess":
		return nil, false, fmt.Errorf("DIGEST-MD5: the server wants the algorithm %q, not md5-sess", directives["algorithm"])
	case !offersAuth(directives["qop"]):
		return nil, false, fmt.Errorf("DIGEST-MD5: the server wants the protection %q, and only auth is supported", directives["qop"])
	}
	// Without the directive the server reads ISO 8859-1 (RFC 2831, 2.1.1).
	utf8 := strings.EqualFold(directives["charset"], "utf-8")
	secret := md5.Sum([]byte(hashText(e.User, utf8) + ":" + hashText(realm, utf8) + ":" + hashText(e.Password, utf8))) //nolint:gosec // see above
	key := hexMD5(string(secret[:]) + ":" + nonce + ":" + e.Cnonce)
	prove := func(method string) string {
		// A nonce serves one exchange, so its count is always 1.
		return hexMD5(key + ":" + nonce + ":00000001:" + e.Cnonce + ":auth:" + hexMD5(method+":"+saslURI))
	}
	// The server proves that it knows the password by the same digest without a method (RFC
	// 2831, 2.1.3).
	e.expected = prove("")
	var b strings.Builder
	if utf8 {
		b.WriteString("charset=utf-8,")
	}
	fmt.Fprintf(&b, "username=%s,realm=%s,nonce=%s,nc=00000001,cnonce=%s,digest-uri=%s,response=%s,qop=auth",
		quoted(e.User), quoted(realm), quoted(nonce), quoted(e.Cnonce), quoted(saslURI), prove("AUTHENTICATE"))
	return []byte(b.String()), false, nil
}

func offersAuth(qop string) bool {
	// Without the directive a server offers auth alone (RFC 2831, 2.1.1).
	return qop == "" || slices.ContainsFunc(strings.Split(qop, ","), func(option string) bool {
		return strings.TrimSpace(option) == "auth"
	})
}

func hexMD5(s string) string {
	sum := md5.Sum([]byte(s)) //nolint:gosec // see above
	return hex.EncodeToString(sum[:])
}

// hashText returns a text as the mechanism hashes it: in ISO 8859-1 if that can represent
// the text, although the text travels in UTF-8.
func hashText(s string, utf8 bool) string {
	latin := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			if utf8 {
				return s
			}
			r = '?'
		}
		latin = append(latin, byte(r))
	}
	return string(latin)
}

func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// parseDirectives reads a list as `realm="x",nonce="y",qop=auth`. The first of
// several directives of a name counts.
func parseDirectives(s string) (map[string]string, error) {
	directives := make(map[string]string)
	for s = strings.TrimLeft(s, ", \t"); s != ""; s = strings.TrimLeft(s, ", \t") {
		key, rest, ok := strings.Cut(s, "=")
		if !ok {
			return nil, fmt.Errorf("a directive without a value: %q", s)
		}
		value := ""
		if strings.HasPrefix(rest, `"`) {
			if value, rest, ok = unquote(rest); !ok {
				return nil, fmt.Errorf("a value without a closing quote: %q", s)
			}
		} else {
			value, rest, _ = strings.Cut(rest, ",")
			value = strings.TrimSpace(value)
		}
		key = strings.ToLower(strings.TrimSpace(key))
		if _, known := directives[key]; !known {
			directives[key] = value
		}
		s = rest
	}
	return directives, nil
}

// unquote reads the quoted string at the beginning of s.
func unquote(s string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			if i++; i == len(s) {
				return "", "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}
