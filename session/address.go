package session

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
)

// parseServers splits a connection string "host:port,host:port/chroot" into addresses and
// chroot. Every ZooKeeper client uses this form.
func parseServers(servers string) (addresses []string, chroot string, err error) {
	bad := func(format string, args ...any) ([]string, string, error) {
		return nil, "", fmt.Errorf("%w %q: %s", ErrInvalidServers, servers, fmt.Sprintf(format, args...))
	}
	// No valid string has "://": a port is not empty, and neither is a name in a path.
	if before, _, ok := strings.Cut(servers, "://"); ok {
		scheme := strings.TrimSpace(before[strings.LastIndexByte(before, ',')+1:])
		return bad("a server has no scheme such as %s://, want %s", scheme, corrected(servers))
	}
	list := servers
	if i := strings.IndexByte(servers, '/'); i >= 0 {
		list, chroot = servers[:i], strings.TrimSpace(servers[i:])
		// A chroot behind each server would otherwise count as one chroot, and all other
		// servers as a part of its name.
		if strings.Contains(chroot, ",") {
			return bad("the chroot comes once, at the end, and has no comma: want %s", corrected(servers))
		}
		// As in the Java client: the chroot / changes no path.
		if chroot == "/" {
			chroot = ""
		} else if err := checkPath(chroot, false); err != nil {
			return bad("the chroot %v", err)
		}
	}
	if strings.TrimSpace(list) == "" {
		return bad("no server named, want %s", validForm)
	}
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			return bad("an empty server between commas")
		}
		host, port, err := splitHostPort(item)
		if err != nil {
			return bad("%v", err)
		}
		addresses = append(addresses, net.JoinHostPort(host, port))
	}
	return addresses, chroot, nil
}

const validForm = `"host:port,host:port/chroot"`

// corrected returns the connection string that servers may have been meant for: without
// schemes, and with the chroot of the first server that has one. It returns the general form
// if that string is not valid either.
func corrected(servers string) string {
	var list []string
	root := ""
	for item := range strings.SplitSeq(servers, ",") {
		if i := strings.LastIndex(item, "://"); i >= 0 {
			item = item[i+len("://"):]
		}
		host, path, ok := strings.Cut(strings.TrimSpace(item), "/")
		list = append(list, host)
		if ok && path != "" && root == "" {
			root = "/" + strings.TrimSuffix(path, "/")
		}
	}
	meant := strings.Join(list, ",") + root
	if _, _, err := parseServers(meant); err != nil {
		return validForm
	}
	return strconv.Quote(meant)
}

func splitHostPort(item string) (host, port string, err error) {
	port = strconv.Itoa(zk.DefaultPort)
	bare := item
	// net.SplitHostPort requires a port, and an IPv6 address may come without one, in
	// brackets or bare.
	if strings.HasPrefix(item, "[") && strings.HasSuffix(item, "]") {
		bare = item[1 : len(item)-1]
	}
	switch {
	case isIPv6(bare):
		host = bare
	case strings.Contains(item, ":"):
		if host, port, err = net.SplitHostPort(item); err != nil {
			return "", "", fmt.Errorf(`server %q is not "host:port" (an IPv6 address goes in brackets, as [::1]:2181)`, item)
		}
	default:
		host = item
	}
	// Otherwise only the dial would fail, and Connect repeats dials until its ctx ends.
	if host == "" || strings.ContainsAny(host, " \t\r\n[]@") {
		return "", "", fmt.Errorf("server %q has no valid host", item)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", "", fmt.Errorf("server %q: port %q is not a number from 1 to 65535", item, port)
	}
	return host, port, nil
}

func isIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && !strings.ContainsAny(a.Zone(), "[]:")
}
