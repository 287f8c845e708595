package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

const master = "/master"

// The context of leadership ends with a cause, as the context of every hold does, and the end of ctx does not
// resign.
func TestLeadershipEndsWithItsCause(t *testing.T) {
	both := []error{zksync.ErrLost, zksync.ErrClosed}
	for name, test := range map[string]struct {
		end    func(t *testing.T, srv *zksynctest.Server, m *session.Manager, e *zksync.Election, cancel func())
		causes []error
		not    error
		resign []error // nil is success
		within time.Duration
	}{
		"resigned": {func(_ *testing.T, _ *zksynctest.Server, _ *session.Manager, e *zksync.Election, _ func()) { e.Resign() },
			[]error{zksync.ErrReleased}, zksync.ErrLost, []error{zksync.ErrNotHeld}, 0},
		"expired": {func(t *testing.T, srv *zksynctest.Server, m *session.Manager, _ *zksync.Election, _ func()) {
			srv.ExpireSession(live(t, m).ID())
		}, []error{zksync.ErrLost}, zksync.ErrClosed, []error{zksync.ErrLost}, time.Second},
		"lease ran out": {func(_ *testing.T, srv *zksynctest.Server, _ *session.Manager, _ *zksync.Election, _ func()) {
			srv.Freeze()
		},
			[]error{zksync.ErrLost}, zksync.ErrClosed, []error{zksync.ErrLost}, 9500 * time.Millisecond},
		"closed": {func(_ *testing.T, _ *zksynctest.Server, m *session.Manager, _ *zksync.Election, _ func()) { m.Close() }, both, nil, both, 0},
		"znode removed": {func(t *testing.T, srv *zksynctest.Server, _ *session.Manager, _ *zksync.Election, _ func()) {
			time.Sleep(time.Second)
			srv.Delete(master + "/" + inLine(srv, master)[0])
		}, []error{zksync.ErrLost}, zksync.ErrClosed, []error{zksync.ErrLost}, 0},
		"caller's ctx": {func(_ *testing.T, _ *zksynctest.Server, _ *session.Manager, _ *zksync.Election, cancel func()) {
			cancel()
		},
			[]error{errEnough}, zksync.ErrLost, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				e := zksync.NewElection(m, master)
				ctx, cancel := context.WithCancelCause(t.Context())
				lead, err := e.Campaign(ctx)
				must(t, err)
				test.end(t, srv, m, e, func() { cancel(errEnough) })
				synctest.Wait()
				cause := ended(t, lead, test.within+time.Nanosecond)
				for _, want := range test.causes {
					if !errors.Is(cause, want) {
						t.Errorf("ended with %v, want %v", cause, want)
					}
				}
				if test.not != nil && errors.Is(cause, test.not) {
					t.Errorf("ended with %v, which is %v", cause, test.not)
				}
				if test.resign == nil && len(inLine(srv, master)) != 1 {
					t.Error("the candidacy has ended without Resign")
				}
				err = e.Resign()
				for _, want := range test.resign {
					mustBe(t, err, want, "resign", master)
				}
				if test.resign == nil {
					must(t, err)
				}
				srv.Thaw()
			})
		})
	}
}

// A candidate whose session is lost campaigns again as the last one, a candidate whose znode was deleted fails with
// ErrLost, and all fail with ErrClosed when the Manager is closed.
func TestCandidateThatIsPutOutOfLine(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		first, e := zksync.NewElection(srv.Connect(t), master), zksync.NewElection(m, master)
		_, err := first.Campaign(t.Context())
		must(t, err)
		stand := func() <-chan error {
			return start(func() error { _, err := e.Campaign(t.Context()); return err })
		}
		waiting := stand()
		must(t, srv.Delete(master+"/"+inLine(srv, master)[1]))
		mustBe(t, <-waiting, zksync.ErrLost, "campaign", master)

		// A lost session only makes it wait for longer, as the last.
		waiting = stand()
		behind := start(func() error {
			_, err := zksync.NewElection(srv.Connect(t), master, zksync.WithID("behind")).Campaign(t.Context())
			return err
		})
		must(t, srv.ExpireSession(live(t, m).ID()))
		time.Sleep(time.Minute)
		all, err := first.Candidates(t.Context())
		must(t, err)
		if len(all) != 3 || all[1].ID != "behind" || all[2].Session != live(t, m).ID() {
			t.Errorf("candidates %+v", all)
		}
		must(t, first.Resign())
		over(t, "the one behind", behind)
		pending(t, "Campaign", waiting)
		must(t, m.Close())
		mustBe(t, <-waiting, zksync.ErrClosed, "campaign", master)
	})
}

// A Run that waits withdraws when ctx ends, and its error matches ctx.Err() and the cause
// and says who leads. Breaks if Run returns context.Cause(ctx).
func TestRunWithdraws(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		_, err := zksync.NewElection(srv.Connect(t), master, zksync.WithID("node-1")).Campaign(t.Context())
		must(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		running := start(func() error {
			return zksync.NewElection(srv.Connect(t), master).Run(ctx, func(context.Context) error {
				t.Error("called")
				return nil
			})
		})
		pending(t, "Run", running)
		cancel(errEnough)
		err = <-running
		mustBe(t, err, errEnough, "run", master)
		mustBe(t, err, context.Canceled, "run", master)
		if !strings.Contains(err.Error(), "behind one other, held by node-1") {
			t.Errorf("Run: %v, want an error that names the leader", err)
		}
		synctest.Wait()
		if left := inLine(srv, master); len(left) != 1 {
			t.Errorf("in line: %v", left)
		}
	})
}

// A Run that is ended by ctx and by WithStopTimeout fails with an error that matches ErrStillRunning, ctx.Err() and the
// cause.
func TestRunThatIsStillRunningMatchesItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		e := zksync.NewElection(srv.Connect(t), master, zksync.WithStopTimeout(time.Second))
		ctx, cancel := context.WithCancelCause(t.Context())
		finish := make(chan struct{})
		defer close(finish)
		running := start(func() error {
			return e.Run(ctx, func(context.Context) error { <-finish; return nil })
		})
		pending(t, "Run", running)
		cancel(errEnough)
		err := <-running
		for _, want := range []error{zksync.ErrStillRunning, context.Canceled, errEnough} {
			mustBe(t, err, want, "run", master)
		}
	})
}

// A candidate's id is its host's name and process id unless WithID sets another one.
func TestCandidateWithoutAnID(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		e := zksync.NewElection(m, master)
		lead, err := e.Campaign(t.Context())
		must(t, err)
		host, err := os.Hostname()
		must(t, err)
		token, _ := zksync.Token(lead)
		want := zksync.Candidate{ID: fmt.Sprintf("%s:%d", host, os.Getpid()), Token: token, Session: live(t, m).ID()}
		if got, err := e.Leader(t.Context()); err != nil || got != want {
			t.Errorf("leader %+v, error %v, want %+v", got, err, want)
		}
	})
}
