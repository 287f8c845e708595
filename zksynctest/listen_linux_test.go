package zksynctest

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/internal/bounds"
)

// No server listens beyond the loopback interface: neither an embedded server, nor a process of a real ensemble,
// nor a proxy in between.
func TestNothingListensBeyondLoopback(t *testing.T) {
	bounds.Long(t)
	t.Parallel()
	embedded := Start(t).Addr()
	ensemble := StartEnsemble(t, 3)
	real := RealZooKeeper(t, 3)
	want := []string{embedded, ensemble.Addr(2), real.Addr(1), real.DirectAddr(3)}
	var all []string
	for _, pid := range descendants(t, os.Getpid()) {
		all = append(all, listeners(t, pid)...)
	}
	for _, addr := range want {
		if !slices.Contains(all, addr) {
			t.Errorf("%s is not among the listeners %v", addr, all)
		}
	}
	for _, addr := range all {
		host, _, err := net.SplitHostPort(addr)
		if ip := net.ParseIP(host); err != nil || !ip.IsLoopback() {
			t.Errorf("%s is open beyond the loopback interface: %v", addr, err)
		}
	}
	if len(all) < 10 { // three ports of each server of the real ensemble, and one of each other server
		t.Errorf("the listeners are %v, want those of all servers", all)
	}
}

// descendants returns a process, and all processes that it has started and that these have started.
func descendants(t *testing.T, pid int) []int {
	t.Helper()
	found := []int{pid}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, _ := os.ReadFile(file) // fails if the thread has ended
		for _, child := range strings.Fields(string(data)) {
			if n, err := strconv.Atoi(child); err == nil {
				found = append(found, descendants(t, n)...)
			}
		}
	}
	return found
}

// listeners returns the addresses of the TCP sockets on which a process listens.
func listeners(t *testing.T, pid int) (all []string) {
	t.Helper()
	sockets := make(map[string]bool) // "socket:[INODE]"
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, file := range files {
		target, _ := os.Readlink(file) // fails if the file was closed
		sockets[target] = true
	}
	for _, table := range []string{"tcp", "tcp6"} {
		f, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			continue // a process that has ended, or no IPv6
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			const local, state, inode, listening = 1, 3, 9, "0A"
			fields := strings.Fields(lines.Text())
			if len(fields) > inode && fields[state] == listening && sockets["socket:["+fields[inode]+"]"] {
				all = append(all, socketAddress(t, fields[local]))
			}
		}
		f.Close()
	}
	return all
}

// socketAddress returns the address that a table of sockets of the kernel has as hexadecimal digits: each group of
// four bytes in the order of the machine, which is little-endian.
func socketAddress(t *testing.T, field string) string {
	t.Helper()
	host, port, _ := strings.Cut(field, ":")
	ip, err := hex.DecodeString(host)
	if err != nil {
		t.Fatalf("address %q: %v", field, err)
	}
	for i := 0; i+4 <= len(ip); i += 4 {
		slices.Reverse(ip[i : i+4])
	}
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		t.Fatalf("address %q: %v", field, err)
	}
	return net.JoinHostPort(net.IP(ip).String(), strconv.Itoa(int(n)))
}
