package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// break does not report a lock as broken that its holder released before the answer. The line to break is the one with
// deleted in remove.
func TestReleasedBeforeTheAnswer(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t) + "/lock"
		mu := zksync.NewMutex(srv.Connect(t), path, zksync.WithID("host-a:1"))
		if err := mu.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		in, answer := io.Pipe()
		out, errs := &buffer{}, &buffer{}
		status := make(chan int, 1)
		go func() {
			status <- run(t.Context(), []string{"break", "-json", "-servers", srv.Address(), path}, in, out, errs)
		}()
		await(t, "the question", func() bool { return strings.Contains(errs.String(), "[y/N]") })
		if err := mu.Unlock(); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(answer, "y\n")
		if s := <-status; s != statusConflict || strings.Contains(out.String(), "host-a") || !strings.Contains(errs.String(), "has left") {
			t.Errorf("status %d, %s, %s", s, out, errs)
		}
	})
}

// A signal ends break while it waits for an answer, with the status of the signal, and the lock is not broken. The line to
// break is the one with ctx.Done in ask.
func TestASignalAtTheQuestion(t *testing.T) {
	srv := zksynctest.Start(t)
	held, err := zksync.NewMutex(srv.Connect(t), "/lock").LockContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "break", "-servers", srv.Addr(), "/lock")
	cmd.Env = append(os.Environ(), asProgram+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	errs := &buffer{}
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "the question", func() bool { return strings.Contains(errs.String(), "[y/N]") })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Errorf("%v: %s", err, errs)
	}
	if held.Err() != nil {
		t.Error("the lock was broken")
	}
}

// JSON contains nothing that a terminal would take for a command, and decodes to the original data. The line to break
// is the one with isCommand in printJSON.
func TestJSONIsPrintable(t *testing.T) {
	srv := zksynctest.Start(t)
	id := "a\u009b2J\u009d0;b\u009c\u007f\u202e\u2028\U000e0001 \u00fc"
	if err := zksync.NewMutex(srv.Connect(t), "/lock", zksync.WithID(id)).Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := finish(t, "who", "-servers", srv.Addr(), "-json", "/lock").out.String()
	var found struct{ Participants []struct{ ID string } }
	if err := json.Unmarshal([]byte(text), &found); err != nil || len(found.Participants) != 1 || found.Participants[0].ID != id {
		t.Errorf("%+v, %v", found, err)
	}
	if strings.IndexFunc(strings.TrimSuffix(text, "\n"), isCommand) >= 0 {
		t.Errorf("%q", text)
	}
}

// A fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A command whose output cannot be written ends and does not succeed. The lines to break are those with err of the output in
// run, and in watchCommand.run.
func TestTheOutputCannotBeWritten(t *testing.T) {
	srv := zksynctest.Start(t)
	if err := zksync.NewMutex(srv.Connect(t), "/lock").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"ls", "/"}, {"ls", "-json", "/"}, {"who", "/lock"}, {"who", "/zookeeper"}, {"who", "-json", "/"}, {"watch", "/lock"}, {"break", "-yes", "/lock"}, {"who", "/lock"}, {"help"}, {"help", "run"}, {"who", "-h"}, {"completion", "bash"}} {
		errs := &buffer{}
		if _, ok := subcommands[args[0]]; ok {
			args = slices.Insert(args, 1, "-servers", srv.Addr())
		}
		status := run(t.Context(), args, strings.NewReader(""), fullDisk{}, errs)
		if status != statusEnsemble || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%v: status %d, %q", args, status, errs)
		}
	}
}

// break leaves the znode that another client has created at the path when the answer to the deletion was lost, or
// when the server had refused the deletion for a reason that passes.
func TestBreakLeavesALaterZnode(t *testing.T) {
	for _, throttled := range []bool{false, true} {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(t.Context(), "/lock", nil, zk.FlagEphemeral); err != nil {
			t.Fatal(err)
		}
		_, stat, err := s.Exists(t.Context(), "/lock")
		if err != nil {
			t.Fatal(err)
		}
		deletion := zksynctest.Fault{At: zksynctest.AfterCommit, Path: "/lock", Match: func(op zkserver.Op) bool {
			return op.Code == zkserver.OpDelete || op.Code == zkserver.OpMulti
		}}
		then := zksynctest.Disconnect
		if throttled {
			deletion.At, then = zksynctest.BeforeCommit, zksynctest.Error(-127)
		}
		deletion.Do = zksynctest.Call(func() {
			if throttled {
				if err := srv.Delete("/lock"); err != nil {
					t.Error(err)
				}
			}
			if err := srv.Create("/lock", []byte("another")); err != nil {
				t.Error(err)
			}
		})
		srv.Inject(deletion)
		deletion.Do = then
		srv.Inject(deletion)
		deleted, err := deleteZnode(t.Context(), m, participant{Path: "/lock", Token: stat.Czxid})
		if data, _ := srv.Get("/lock"); deleted == throttled || err != nil || string(data) != "another" {
			t.Errorf("throttled %v: deleted %v, %v, and the znode has %q", throttled, deleted, err, data)
		}
	}
}

// watch shows the root as it shows any other path. The line to break is the one with dirs in watchCommand.run.
func TestWatchTheRoot(t *testing.T) {
	srv := zksynctest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	r, done := start(ctx, "watch", "-servers", srv.Addr(), "/")
	await(t, "the watches of three znodes", func() bool { return isClosed(done) || srv.Watches() >= 3 })
	cancel()
	<-done
	r.want(t, 130)
}
