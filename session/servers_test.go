package session

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
)

// Connect takes "host:port,host:port/chroot" with IPv6 addresses and optional ports, and refuses any other string with
// ErrInvalidServers.
func TestConnectionStrings(t *testing.T) {
	for _, test := range []struct {
		in     string
		want   []string
		chroot string
	}{
		{"zk1", []string{"zk1:2181"}, ""},
		{"zk1:2182", []string{"zk1:2182"}, ""},
		{"zk1,zk2:2182 , zk3", []string{"zk1:2181", "zk2:2182", "zk3:2181"}, ""},
		{"zk1:2181/app", []string{"zk1:2181"}, "/app"},
		{"zk1,zk2/app/locks", []string{"zk1:2181", "zk2:2181"}, "/app/locks"},
		{"zk1/", []string{"zk1:2181"}, ""},
		{"[::1]", []string{"[::1]:2181"}, ""},
		{"[::1]:2182", []string{"[::1]:2182"}, ""},
		{"::1", []string{"[::1]:2181"}, ""},
		{"[fe80::1%eth0]:2181,10.0.0.1/x", []string{"[fe80::1%eth0]:2181", "10.0.0.1:2181"}, "/x"},
	} {
		got, chroot, err := parseServers(test.in)
		if err != nil || !slices.Equal(got, test.want) || chroot != test.chroot {
			t.Errorf("%q: %q, %q, error %v; want %q, %q", test.in, got, chroot, err, test.want, test.chroot)
		}
	}
	for in, what := range map[string]string{
		"": "no server", "  ": "no server", "/app": "no server", "zk1,": "empty server", ",zk1": "empty server",
		"zk1,,zk2": "empty server", ":2181": "host", "zk1:": "port", "zk1:0": "port", "zk1:65536": "port",
		"zk1:-1": "port", "zk1:x": "port", "zk 1": "host", "zk1:1:2": "host:port", "[::1": "", "user@zk1": "host",
		"zk1/a//b": "chroot", "zk1/a/": "chroot", "zk1/../a": "chroot", "zk1/a\x00": "chroot",
	} {
		_, _, err := parseServers(in)
		if !errors.Is(err, ErrInvalidServers) || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: error %v, want one about %q", in, err, what)
		}
	}
}

// A chroot behind each server and a scheme are refused with ErrInvalidServers, and the error has the valid string that was
// meant, or the general form if there is none.
func TestConnectionStringsWithSeveralChroots(t *testing.T) {
	const form = `"host:port,host:port/chroot"`
	for in, want := range map[string][]string{
		"zk1:2181/a,zk2:2181/b":          {"once, at the end", `"zk1:2181,zk2:2181/a"`},
		"zk1:2181/a/b, zk2:2181/a/b":     {"once, at the end", `"zk1:2181,zk2:2181/a/b"`},
		"zk1/,zk2/":                      {"once, at the end", `"zk1,zk2"`},
		"zk1,zk2/a,zk3":                  {"once, at the end", `"zk1,zk2,zk3/a"`},
		"zk1/a,b:c":                      {"no comma", form},
		"zk1/a,":                         {"no comma", form},
		"http://zk1:2181":                {"scheme such as http://", `"zk1:2181"`},
		"http://zk1:2181/":               {"scheme such as http://", `"zk1:2181"`},
		"zk1, zk://zk2:2181/a":           {"scheme such as zk://", `"zk1,zk2:2181/a"`},
		"zk://zk1:2181/a,zk://zk2:2181/": {"scheme such as zk://", `"zk1:2181,zk2:2181/a"`},
		"zk://user@zk1/a":                {"scheme such as zk://", form},
		"://":                            {"scheme", form},
	} {
		_, _, err := parseServers(in)
		if !errors.Is(err, ErrInvalidServers) || !strings.Contains(err.Error(), want[0]) || !strings.HasSuffix(err.Error(), want[1]) {
			t.Errorf("%q: error %v, want one about %s that ends in %s", in, err, want[0], want[1])
		}
	}
}

// An accepted connection string names hosts and ports that can be dialed, and parses to the same result when it is
// put together again.
func FuzzConnectionStrings(f *testing.F) {
	for _, seed := range []string{"zk1", "zk1:2181,zk2:2182/app", "[::1]:1/x", "a,b,c", "/x", "::1", "zk1:99999", "[fe80::1%a]:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		list, chroot, err := parseServers(in)
		if err != nil {
			if !errors.Is(err, ErrInvalidServers) {
				t.Fatalf("error %v does not wrap ErrInvalidServers", err)
			}
			return
		}
		if len(list) == 0 || chroot != "" && checkPath(chroot, false) != nil {
			t.Fatalf("%q: %q, %q", in, list, chroot)
		}
		for _, a := range list {
			if host, port, err := net.SplitHostPort(a); err != nil || host == "" || port == "" {
				t.Fatalf("%q: address %q, error %v", in, a, err)
			}
		}
		again, root, err := parseServers(strings.Join(list, ",") + chroot)
		if err != nil || !slices.Equal(again, list) || root != chroot {
			t.Fatalf("%q: %q, %q; read again: %q, %q, error %v", in, list, chroot, again, root, err)
		}
	})
}
