package main

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// If the connection is lost at the grant, the command is not started: a signal and the end of -wait end zklock, and a loss of the
// hold has a status of its own, or lets a candidate campaign again. Breaks if acquire waits for the session after the call
// of interrupt.
func TestConnectionLostAtTheGrant(t *testing.T) {
	for _, c := range []struct {
		name   string
		run    runCommand
		signal bool
		within time.Duration
		status int
		says   string
	}{
		{"signal", runCommand{}, true, 5 * time.Second, 128 + int(syscall.SIGTERM), ""},
		{"signal to a candidate", runCommand{elect: true}, true, 5 * time.Second, 128 + int(syscall.SIGTERM), ""},
		{"wait", runCommand{wait: 5 * time.Second}, false, 8 * time.Second, statusEnsemble, "no server answers, so nothing is known about /a: "},
		{"loss", runCommand{}, false, time.Minute, statusEnsemble, "zklock: /a was lost before the command was started"},
		{"loss of a candidate", runCommand{elect: true}, false, time.Minute, statusEnsemble, "zklock: leadership of /a was lost before the command was started; campaigning again\nzklock: the second campaign\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				srv := zksynctest.Start(t)
				m := srv.Connect(t, session.WithTimeout(40*time.Second))
				r, out := c.run, &buffer{}
				r.path, r.quiet = "/a", true
				h := r.holder(m)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				var cut time.Time
				acquire := h.acquire
				h.acquire = func(wait context.Context, try bool) (context.Context, bool, error) {
					if !cut.IsZero() {
						return nil, false, errors.New("the second campaign")
					}
					held, ok, err := acquire(wait, try)
					s, lost := m.Session(wait)
					if err != nil || lost != nil {
						t.Fatal(err, lost)
					}
					srv.Partition(s.ID())
					for m.State() == session.Connected {
						time.Sleep(time.Millisecond)
					}
					cut = time.Now()
					if c.signal {
						time.AfterFunc(time.Second, func() { cancel(signalError{syscall.SIGTERM}) })
					}
					return held, ok, err
				}
				status := r.runHeld(ctx, &program{stderr: out}, m, h, &child{messages: out}, time.Now())
				if took := time.Since(cut); status != c.status || took > c.within || !strings.Contains(out.String(), c.says) {
					t.Errorf("status %d after %v, want %d within %v: %q, want %q", status, took, c.status, c.within, out, c.says)
				}
			})
		})
	}
}
