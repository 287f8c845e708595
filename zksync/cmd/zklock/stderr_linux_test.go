package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
)

// fullPipe returns the ends of a pipe that has no room.
func fullPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	for size := 4096; size > 0; {
		if _, err := syscall.Write(fds[1], make([]byte, size)); err != nil {
			size /= 2
		}
	}
	// A shell gives zklock a pipe that blocks.
	if err := syscall.SetNonblock(fds[1], false); err != nil {
		t.Fatal(err)
	}
	r, w = os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// launch starts zklock as a process with a standard error. The channel gets the result of Wait.
func launch(t *testing.T, stderr *os.File, args ...string) (*exec.Cmd, <-chan error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), asProgram+"=1"), stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return cmd, ended
}

// within waits for the end of a process, and fails and kills it if it takes longer than 10 s.
func within(t *testing.T, cmd *exec.Cmd, ended <-chan error) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("zklock did not end within 10 s")
		_ = cmd.Process.Kill()
		<-ended
	}
}

// A command is killed before the next holder begins, and zklock ends, also if nobody reads the standard error of zklock
// or the reader has gone. To see this test fail, write in messages.Write, or leave signal.Notify out of newMessages.
func TestLossWithoutAReaderOfStderr(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"full", "closed"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			srv := zksynctest.Start(t)
			dir := t.TempDir()
			first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
			p := newProxy(t, srv.Addr())
			r, w := fullPipe(t)
			if kind == "closed" {
				r.Close()
			}
			// The work is done by a child of the command: Linux kills the command alone when zklock dies.
			a, aEnded := launch(t, w, "run", "-servers", p.addr, "-timeout", "4s", "/locks/a", "--", "sh", "-c",
				fmt.Sprintf(`trap "" TERM; (while [ -d %s ]; do date +%%s%%N >> %s; sleep 0.01; done) & while :; do wait; sleep 0.01; done`, dir, first))
			await(t, "the first command", func() bool { _, err := os.Stat(first); return err == nil })
			b, bDone := start(t.Context(), "run", "-servers", srv.Addr(), "/locks/a", "--", "sh", "-c", fmt.Sprintf(`date +%%s%%N > %s; sleep 1`, second))
			await(t, "the second in line", func() bool { names, _ := srv.Children("/locks/a"); return len(names) == 2 })
			p.silence()
			<-bDone
			b.want(t, 0)
			within(t, a, aEnded)
			if status := a.ProcessState.ExitCode(); status != statusLost {
				t.Errorf("%v, want status %d", a.ProcessState, statusLost)
			}
			ours, theirs := stamps(t, first), stamps(t, second)
			if overlap := time.Duration(ours[len(ours)-1] - theirs[0]); overlap >= 0 {
				t.Errorf("the first command ran for %v beside the second", overlap)
			}
		})
	}
}
