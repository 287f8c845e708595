package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/zksynctest"
)

// The commands of the first and of the second term of run -elect ignore the same signals.
func TestSignalsOfTheSecondTerm(t *testing.T) {
	srv := zksynctest.Start(t)
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	out := &buffer{}
	cmd := exec.Command(os.Args[0], "run", "-elect", "-servers", srv.Addr(), "/e", "--", "sh", "-c",
		fmt.Sprintf(`grep SigIgn /proc/self/status >> %s; echo started; exec sleep 600`, log))
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "first", func() bool { return strings.Count(out.String(), "started") == 1 })
	finish(t, "break", "-servers", srv.Addr(), "-yes", "/e").want(t, 0)
	await(t, "second", func() bool { return strings.Count(out.String(), "started") == 2 })
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Wait()
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) != 2 || lines[0] != lines[1] {
		t.Errorf("ignored signals of the two commands: %q\n%s", lines, out)
	}
}
