package clients

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// zkdev builds zksynctest/cmd/zkdev and returns a function that starts a server on a data file, at
// an address. The returned function returns the address and a function that kills the server.
func zkdev(t *testing.T) func(listen string) (addr string, kill func()) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "zkdev")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/zkdev")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return func(listen string) (string, func()) {
		cmd := exec.Command(program, "-listen", listen, "-data", filepath.Join(dir, "data"))
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		t.Cleanup(kill)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if _, addr, ok := strings.Cut(lines.Text(), "listening on "); ok {
				return addr, kill
			}
		}
		t.Fatal("zkdev ended before it listened")
		return "", nil
	}
}

// After kill -9, the shell of Apache ZooKeeper reads its own writes from the next server on the
// same file.
func TestShellOnZkdev(t *testing.T) {
	t.Parallel()
	path, start := shell(t), zkdev(t)
	addr, kill := start("127.0.0.1:0")
	first := runShell(t, path, addr, "create /a one\ncreate -s /a/s- x\ncreate -e /e gone\nset -s /a two\nls -R /a\nquit\n")
	for _, want := range []string{"dataLength = 3", "/a/s-0000000000"} {
		if !strings.Contains(first.results, want) {
			t.Errorf("the shell does not say %q:\n%s%s", want, first.results, first.remarks)
		}
	}
	kill()
	addr, _ = start(addr)
	second := runShell(t, path, addr, "get -s /a\ncreate -s /a/s- y\nls -R /\n")
	for _, want := range []string{"two\ncZxid = 0x2\n", "dataVersion = 1", "/a/s-0000000001", "/zookeeper/quota"} {
		if !strings.Contains(second.results+second.remarks, want) {
			t.Errorf("after a kill the shell does not say %q:\n%s%s", want, second.results, second.remarks)
		}
	}
	if strings.Contains(second.results, "/e\n") {
		t.Errorf("the shell has quit, and its ephemeral is there:\n%s", second.results)
	}
}
