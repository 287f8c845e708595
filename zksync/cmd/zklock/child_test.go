package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A heldChild runs a command while a lock is held, without the rest of zklock.
type heldChild struct {
	out, messages *buffer
	mu            *zksync.Mutex
	exit          int
	lost          bool
	ended         chan struct{}
}

func hold(t *testing.T, ctx context.Context, signal func(*os.Process, syscall.Signal) error, script string) *heldChild {
	t.Helper()
	m := zksynctest.Start(t).Connect(t, session.WithTimeout(10*time.Second))
	h := &heldChild{out: &buffer{}, messages: &buffer{}, mu: zksync.NewMutex(m, "/locks/a"), ended: make(chan struct{})}
	held, err := h.mu.LockContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Session(held)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{args: []string{"sh", "-c", script}, grace: 50 * time.Millisecond, stdin: strings.NewReader(""), stdout: h.out, stderr: h.out, messages: h.messages, signal: signal}
	go func() {
		defer close(h.ended)
		h.exit, h.lost = c.run(ctx, held, s)
	}()
	await(t, "the command", func() bool { return h.out.String() != "" })
	return h
}

// zklock does not call a command killed that it may not kill: it tells the error, waits while the command runs, and ends at a signal,
// also after a loss. The lines to break are those with send, and that with killed behind the loss, in child.watch.
func TestACommandThatCannotBeKilled(t *testing.T) {
	t.Parallel()
	for _, loss := range []bool{false, true} {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		var command atomic.Pointer[os.Process]
		h := hold(t, ctx, func(p *os.Process, sig syscall.Signal) error {
			command.Store(p)
			return os.NewSyscallError("kill", syscall.EPERM)
		}, "echo started; exec sleep 600 >/dev/null 2>&1")
		if loss {
			if err := h.mu.Unlock(); err != nil {
				t.Fatal(err)
			}
			await(t, "the error of KILL", func() bool { return strings.Contains(h.messages.String(), "KILL could not be sent") })
			if isClosed(h.ended) {
				t.Error("zklock has ended beside its command, without a signal")
			}
		}
		cancel(signalError{syscall.SIGTERM})
		select {
		case <-h.ended:
			said := h.messages.String()
			if h.exit != statusLost || h.lost != loss || strings.Contains(said, "is killed") || !strings.Contains(said, "KILL could not be sent") || !strings.Contains(said, "not permitted") || !strings.Contains(said, "runs on") {
				t.Errorf("loss %v: status %d, lost %v: %s", loss, h.exit, h.lost, said)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("loss %v: zklock has not ended 10 s after the signal", loss)
		}
		if p := command.Load(); p != nil {
			_ = p.Kill()
		}
		<-h.ended
	}
}

// A command that stops again and again, as one of the background does that reads the terminal, is continued once in a second
// and not more often, and is killed at the loss. The line to break is the one with resumed.Add in child.watch.
func TestACommandThatStopsAgainAndAgain(t *testing.T) {
	t.Parallel()
	var resumed atomic.Int64
	h := hold(t, t.Context(), func(p *os.Process, sig syscall.Signal) error {
		if sig == syscall.SIGCONT {
			resumed.Add(1)
		}
		return signalGroup(p, sig)
	}, "echo started; while :; do kill -STOP $$; done")
	await(t, "the first SIGCONT", func() bool { return resumed.Load() > 0 })
	begun := time.Now()
	await(t, "two more", func() bool { return resumed.Load() > 2 })
	if took := time.Since(begun); took < 1500*time.Millisecond {
		t.Errorf("%d SIGCONT in %v", resumed.Load(), took)
	}
	if err := h.mu.Unlock(); err != nil {
		t.Fatal(err)
	}
	<-h.ended
	if h.exit != 128+int(syscall.SIGKILL) || !h.lost {
		t.Errorf("status %d, lost %v: %s", h.exit, h.lost, h.messages)
	}
}

// A command that has joined another process group is killed at the loss as well. The line to break is the one with ESRCH
// in signalGroup.
func TestACommandThatLeavesItsGroup(t *testing.T) {
	t.Parallel()
	h := hold(t, t.Context(), signalGroup, fmt.Sprintf("%s=%s exec %s", asProgram, leavesItsGroup, os.Args[0]))
	if err := h.mu.Unlock(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-h.ended:
	case <-time.After(20 * time.Second):
		t.Fatalf("the command has not ended 20 s after the loss: %s", h.messages)
	}
	if h.exit != 128+int(syscall.SIGKILL) || !h.lost {
		t.Errorf("status %d, lost %v: %s", h.exit, h.lost, h.messages)
	}
}
