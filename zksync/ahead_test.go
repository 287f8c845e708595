package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// explained checks that err is the end of a ctx, and that its text says all parts.
func explained(t *testing.T, err error, parts ...string) {
	t.Helper()
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the end of the ctx", err)
		return
	}
	says(t, err, parts...)
}

// explainedCall is explained for the error of a call that waits. A busy server may answer
// too late for the reason to be known, and then the call is repeated with more time.
func explainedCall(t *testing.T, call func(context.Context) error, parts ...string) {
	t.Helper()
	for limit := 300 * time.Millisecond; ; limit *= 2 {
		err := call(within(t, limit))
		missing := func(part string) bool { return err == nil || !strings.Contains(err.Error(), part) }
		if limit > 10*time.Second || !slices.ContainsFunc(parts, missing) {
			explained(t, err, parts...)
			return
		}
	}
}

func says(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want one that says %q", err, part)
		}
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// The error of a wait in line that its ctx ends names how many are ahead, the holder,
// and the holder's session, and says if the holder is this process. After three
// seconds the same is logged. Breaks if contender.await returns session.Cancelled.
func TestAWaitInLineNamesTheHolder(t *testing.T) {
	t.Parallel()
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		t.Parallel()
		path := servers.Path(t)
		core, logs := observer.New(zapcore.InfoLevel)
		holder := srv.Connect(t)
		m := srv.Connect(t, session.WithLogger(zap.New(core)))
		lead, err := zksync.NewElection(holder, path+"/e", zksync.WithID("node-1")).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer lead.Done()
		s, err := holder.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprintf("(session 0x%x", uint64(s.ID()))
		campaign, cancelCampaign := context.WithCancel(t.Context())
		defer cancelCampaign()
		begun, ended := time.Now(), make(chan error, 1)
		go func() {
			_, err := zksync.NewElection(m, path+"/e").Campaign(campaign)
			ended <- err
		}()
		warned := func() []observer.LoggedEntry { return logs.FilterMessage("a call waited").All() }
		eventually(t, "a log line of the wait", func() bool { return len(warned()) > 0 })
		if waited := time.Since(begun); waited < 3*time.Second {
			t.Errorf("the line came after %v, want 3s", waited)
		}
		cancelCampaign()
		err = <-ended
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want the end of the ctx", err)
		}
		says(t, err, "campaign "+path+"/e: waiting for ", "behind one other, held by node-1 "+id)
		lines := warned()
		if len(lines) != 1 {
			t.Fatalf("%d lines, want one: %v", len(lines), lines)
		}
		fields := fmt.Sprint(lines[0].ContextMap())
		for _, part := range []string{"operation:campaign", "path:" + path + "/e", "held by node-1 " + id} {
			if !strings.Contains(fields, part) {
				t.Errorf("the line has %s, want %q", fields, part)
			}
		}

		// Several are ahead: the holder is known by the name of its znode at least.
		mine := zksync.NewMutex(holder, path+"/l")
		if err := mine.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer mine.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		second := make(chan error)
		go func() { second <- zksync.NewMutex(holder, path+"/l").Lock(ctx) }()
		for {
			names, _, err := s.Children(t.Context(), path+"/l")
			if err != nil {
				t.Fatal(err)
			}
			if len(names) == 2 {
				break
			}
		}
		explainedCall(t, zksync.NewMutex(m, path+"/l").Lock, "lock "+path+"/l: waiting for ", "behind 2 others, held by ")

		// Self-deadlock, by another value and by the same.
		explainedCall(t, zksync.NewMutex(holder, path+"/l").Lock, "that is this process itself", "not reentrant")
		explainedCall(t, mine.Lock, "the same value; goroutines that wait: 1 (locks are not reentrant)")
		cancel()
		<-second
	})
}

// The errors of waits for units, for a gate and for a writer say what they waited
// for. Breaks if leases.take, Barrier.Wait or readGroup.wait returns
// session.Cancelled without a reason.
func TestOtherWaitsSayTheirReason(t *testing.T) {
	t.Parallel()
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		t.Parallel()
		path := servers.Path(t)
		m, other := srv.Connect(t), srv.Connect(t)
		sem := zksync.NewSemaphore(other, path+"/s", 3)
		if err := sem.Acquire(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		acquire := func(ctx context.Context) error { return zksync.NewSemaphore(m, path+"/s", 3).Acquire(ctx, 2) }
		explainedCall(t, acquire, "acquire "+path+"/s: ", "others hold 2 of 3")

		gate := zksync.NewBarrier(m, path+"/g")
		if err := gate.Set(t.Context()); err != nil {
			t.Fatal(err)
		}
		explainedCall(t, gate.Wait, "for the gate to be opened, which was set at ")

		rw := zksync.NewRWMutex(other, path+"/rw")
		if err := rw.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer rw.Unlock()
		explainedCall(t, zksync.NewRWMutex(m, path+"/rw").RLock, "behind one other, held by ")
	})
}

// A candidate that waits an hour behind a leader logs the reason at the level Info, and no warning, with both layouts.
// Breaks if Election has a line without Standby, or if raceRun.rest calls StartWait.
func TestAStandbyCandidateLogsNoWarning(t *testing.T) {
	for _, layout := range []zksync.Layout{zksync.LayoutCurator, zksync.LayoutEphemeral} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			if _, err := zksync.NewElection(srv.Connect(t), "/e", zksync.WithLayout(layout)).Campaign(t.Context()); err != nil {
				t.Fatal(err)
			}
			core, logs := observer.New(zapcore.InfoLevel)
			standby := zksync.NewElection(srv.Connect(t, session.WithLogger(zap.New(core))), "/e", zksync.WithLayout(layout))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			if _, err := standby.Campaign(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v: %v, want the end of the ctx", layout, err)
			}
			waited := logs.FilterMessage("a call waited")
			if waited.FilterLevelExact(zapcore.InfoLevel).Len() == 0 {
				t.Errorf("%v: no line says why the candidate waits", layout)
			}
			if n := logs.FilterLevelExact(zapcore.WarnLevel).Len(); n > 0 {
				t.Errorf("%v: %d warnings in an hour, want none", layout, n)
			}
		})
	}
}

// A candidate that waits an hour behind another candidate of its process logs the reason at the level Info, and no warning,
// with both layouts. Breaks if takeSlot calls StartWait.
func TestACandidateBehindItsSiblingLogsNoWarning(t *testing.T) {
	for _, layout := range []zksync.Layout{zksync.LayoutCurator, zksync.LayoutEphemeral} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			core, logs := observer.New(zapcore.InfoLevel)
			m := srv.Connect(t, session.WithLogger(zap.New(core)))
			if _, err := zksync.NewElection(m, "/e", zksync.WithLayout(layout)).Campaign(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := zksync.NewElection(m, "/e", zksync.WithLayout(layout)).Campaign(within(t, time.Hour)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v: %v, want the end of the ctx", layout, err)
			}
			if logs.FilterMessage("a call waited").FilterLevelExact(zapcore.InfoLevel).Len() == 0 {
				t.Errorf("%v: no line says why the candidate waits", layout)
			}
			if n := logs.FilterLevelExact(zapcore.WarnLevel).Len(); n > 0 {
				t.Errorf("%v: %d warnings in an hour, want none", layout, n)
			}
		})
	}
}
