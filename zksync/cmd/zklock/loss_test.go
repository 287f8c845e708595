package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// stamps reads the times, in nanoseconds, that commands have written.
func stamps(t *testing.T, file string) (all []int64) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	for _, line := range lines {
		if n, err := strconv.ParseInt(strings.TrimSuffix(line, "\n"), 10, 64); err == nil && strings.HasSuffix(line, "\n") {
			all = append(all, n)
		}
	}
	return all
}

// A command that ignores TERM is killed before the servers give its lock to the next
// command, though the grace is longer than the session timeout, with each kind of hold.
// To see this test fail, leave the limits out of child.watch and wait for the grace after
// a loss.
func TestTwoCommandsNeverRunAtTheSameTime(t *testing.T) {
	t.Parallel()
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		t.Parallel()
		for _, mode := range []string{"-lock", "-elect", "-sem=1"} {
			t.Run(mode, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
				p := newProxy(t, srv.Address())
				path := servers.Path(t)
				ctx, cancel := context.WithCancel(t.Context())
				options := []string{"run", "-timeout", bounds.Size("4s", "6s"), "-grace", "20s", mode, path, "--", "sh", "-c"}
				a, aDone := start(ctx, append(append([]string{options[0], "-servers", p.addr}, options[1:]...),
					fmt.Sprintf(`trap "" TERM; while :; do date +%%s%%N >> %s; done`, first))...)
				await(t, "the first command", func() bool { _, err := os.Stat(first); return err == nil })
				b, bDone := start(ctx, append(append([]string{options[0], "-servers", srv.Address()}, options[1:]...),
					fmt.Sprintf(`date +%%s%%N > %s`, second))...)
				time.AfterFunc(500*time.Millisecond, p.silence)
				<-bDone
				cancel()
				<-aDone
				b.want(t, 0)
				if mode != "-elect" {
					a.want(t, statusLost, "the command is killed")
				}
				ours, theirs := stamps(t, first), stamps(t, second)
				if len(ours) == 0 || len(theirs) != 1 {
					t.Fatalf("%d and %d times were written", len(ours), len(theirs))
				}
				if overlap := time.Duration(ours[len(ours)-1] - theirs[0]); overlap >= 0 {
					t.Errorf("the first command ran for %v beside the second", overlap)
				}
			})
		}
	})
}

// A break of the lock kills the command at once, even with a long grace.
func TestBreakKills(t *testing.T) {
	t.Parallel()
	srv := zksynctest.Start(t)
	r, done := start(t.Context(), "run", "-servers", srv.Addr(), "-grace", "20s", "-id", "stubborn", "/locks/a", "--", "sh", "-c", `trap "" TERM; echo started; sleep 600`)
	await(t, "the command", func() bool { return r.out.String() != "" })
	begun := time.Now()
	finish(t, "break", "-servers", srv.Addr(), "-yes", "/locks/a").want(t, 0, "nobody holds /locks/a")
	<-done
	r.want(t, statusLost, "the command is killed", "was lost while the command ran")
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the command was killed after %v", took)
	}
}

// A command whose contender an operator removes while it waits ends with the status of a conflict, and a
// candidate campaigns again.
func TestARemovedContender(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"-lock", "-elect"} {
		t.Run(mode, func(t *testing.T) {
			srv := zksynctest.Start(t)
			begin := func(ctx context.Context) (*result, <-chan struct{}) {
				return start(ctx, "run", "-servers", srv.Addr(), mode, "-E", "9", "/locks/a", "--", "sh", "-c", `echo started; sleep 600 & wait`)
			}
			ctx, cancel := context.WithCancel(t.Context())
			holder, held := begin(ctx)
			await(t, "the holder", func() bool { return holder.out.String() != "" })
			first, _ := srv.Children("/locks/a")
			waiter, ended := begin(ctx)
			behind := func() string {
				names, _ := srv.Children("/locks/a")
				names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(first, name) })
				return strings.Join(names, " ")
			}
			await(t, "the waiter", func() bool { return behind() != "" })
			removed := behind()
			if err := srv.Delete("/locks/a/" + removed); err != nil {
				t.Fatal(err)
			}
			if mode == "-lock" {
				<-ended
				waiter.want(t, 9, "another client has removed this contender")
			} else {
				await(t, "the next candidacy", func() bool { return behind() != "" && behind() != removed })
			}
			cancel()
			<-ended
			<-held
		})
	}
}

// After a signal the command has its grace, while the lock is held, and the exit status
// names the signal that came while zklock waited.
func TestSignals(t *testing.T) {
	t.Parallel()
	srv := zksynctest.Start(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	r, done := start(ctx, "run", "-servers", srv.Addr(), "/locks/a", "--", "sh", "-c", `trap "sleep 0.2; exit 5" TERM; echo started; while :; do sleep 0.05; done`)
	await(t, "the command", func() bool { return r.out.String() != "" })
	waiting, stop := context.WithCancelCause(t.Context())
	w, wDone := start(waiting, "run", "-servers", srv.Addr(), "/locks/a", "--", "echo", "ran")
	await(t, "the second in line", func() bool { names, _ := srv.Children("/locks/a"); return len(names) == 2 })
	stop(signalError{syscall.SIGHUP})
	<-wDone
	w.want(t, 128+int(syscall.SIGHUP))
	cancel(signalError{syscall.SIGTERM})
	<-done
	r.want(t, 5)
	if names, _ := srv.Children("/locks/a"); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
}

// A hangup does not end a command that was started with nohup. The line to break is the one with signal.Ignored in main.
func TestNohup(t *testing.T) {
	if _, err := exec.LookPath("nohup"); err != nil {
		t.Skip("nohup is not installed")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	srv := zksynctest.Start(t)
	end := filepath.Join(t.TempDir(), "end")
	cmd := exec.Command("nohup", self, "run", "-servers", srv.Addr(), "/lock", "--", "sh", "-c",
		`echo started; until [ -e "$0" ]; do sleep 0.02; done; sleep 0.3; echo finished`, end)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	out := &buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "the command", func() bool { return strings.Contains(out.String(), "started") })
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "finished") {
		t.Errorf("%v: %q", err, out)
	}
}

// Every command ends within its bounds if no server answers, and says so, also if the
// servers have gone after the connect.
func TestNoServerAnswers(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"run", "-try", "/a", "true"}, {"run", "-wait", "300ms", "-connect", "1m", "/a", "true"}, {"run", "/a", "true"},
		{"ls", "/"}, {"who", "/a"}, {"watch", "/a"}, {"break", "/a"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			args := append([]string{args[0], "-connect", "300ms", "-servers", "127.0.0.1:1"}, args[1:]...)
			finish(t, args...).want(t, statusEnsemble, "127.0.0.1:1")
			if took := time.Since(begun); took > 3*time.Second {
				t.Errorf("%v ended after %v", args, took)
			}
		})
	}
	srv := zksynctest.Start(t)
	mu := zksync.NewMutex(srv.Connect(t), "/a")
	if err := mu.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, srv.Addr())
	r, done := start(t.Context(), "run", "-servers", p.addr, "-timeout", "4s", "-wait", "4s", "/a", "true")
	await(t, "the second in line", func() bool { names, _ := srv.Children("/a"); return len(names) == 2 })
	p.silence()
	<-done
	r.want(t, statusEnsemble, "no server answers")
}

// A wait explains itself after 3 s, and a failure names the holder.
func TestTheHolderIsNamed(t *testing.T) {
	t.Parallel()
	srv := zksynctest.Start(t)
	m := srv.Connect(t)
	s, err := m.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := zksync.NewMutex(m, "/a", zksync.WithID("host-a:4711")).Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprintf("%#x", uint64(s.ID()))
	finish(t, "run", "-servers", srv.Addr(), "-try", "/a", "true").want(t, 1, "/a is held by host-a:4711", id)
	// The quiet command waits for a lock of its own: the other command counts the callers that wait for /a.
	if err := zksync.NewMutex(m, "/quiet").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	quiet, done := start(t.Context(), "run", "-servers", srv.Addr(), "-quiet", "-wait", "3500ms", "/quiet", "true")
	finish(t, "run", "-servers", srv.Addr(), "-wait", "3500ms", "/a", "true").want(t, 1, "zklock: waiting: /a is held by host-a:4711", "1 waiting", id)
	<-done
	if quiet.want(t, 1); strings.Contains(quiet.errors.String(), "zklock: waiting: ") {
		t.Errorf("-quiet: %s", quiet.errors)
	}
}

// Readers share, a writer excludes them and other writers, a semaphore limits, and each command finds its token.
func TestModes(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path, m := servers.Path(t), srv.Connect(t, session.WithTimeout(10*time.Second))
		at := func(args ...string) *result {
			return finish(t, append([]string{"run", "-servers", srv.Address()}, args...)...)
		}
		rw := zksync.NewRWMutex(m, path+"/rw")
		if err := rw.RLock(t.Context()); err != nil {
			t.Fatal(err)
		}
		at("-try", "-rlock", path+"/rw", "sh", "-c", "echo token $ZKSYNC_TOKEN").want(t, 0, "token ")
		at("-try", "-wlock", path+"/rw", "true").want(t, 1)
		if err := rw.RUnlock(); err != nil {
			t.Fatal(err)
		}
		if err := rw.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		at("-try", "-rlock", path+"/rw", "true").want(t, 1)
		at("-try", "-wlock", path+"/rw", "true").want(t, 1)
		// Different kinds of locks do not exclude each other, as the manual says.
		at("-try", path+"/rw", "true").want(t, 0)
		if err := rw.Unlock(); err != nil {
			t.Fatal(err)
		}
		at("-try", "-wlock", path+"/rw", "sh", "-c", "echo token $ZKSYNC_TOKEN").want(t, 0, "token ")
		sem := zksync.NewSemaphore(m, path+"/sem", 2)
		if err := sem.Acquire(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		at("-try", "-sem", "2", path+"/sem", "true").want(t, 0)
		if err := sem.Acquire(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		at("-try", "-sem", "2", path+"/sem", "true").want(t, 1)
	})
}

// A signal ends zklock within seconds also if the server does not answer: while zklock waits for the lock, and while
// it releases the lock behind its command.
func TestSignalsAtAServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	srv := zksynctest.Start(t)
	launch := func(script string) (*exec.Cmd, *buffer) {
		cmd, out := exec.Command(os.Args[0], "run", "-servers", srv.Addr(), "-timeout", "20s", "/locks/a", "--", "sh", "-c", script), &buffer{}
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), asProgram+"=1"), out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, out
	}
	running, out := launch(`trap "exit 5" TERM; echo started; while :; do sleep 0.05; done`)
	await(t, "the command", func() bool { return out.String() != "" })
	waiting, _ := launch("true")
	await(t, "the second in line", func() bool { names, _ := srv.Children("/locks/a"); return len(names) == 2 })
	srv.Freeze()
	for cmd, status := range map[*exec.Cmd]int{waiting: 128 + int(syscall.SIGTERM), running: 5} {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		begun := time.Now()
		_ = cmd.Wait()
		if took := time.Since(begun); took > 8*time.Second || cmd.ProcessState.ExitCode() != status {
			t.Errorf("zklock ended %v after the signal, with %v, want status %d: %s", took, cmd.ProcessState, status, out)
		}
	}
}
