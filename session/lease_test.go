package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const lease = timeout * 2 / 3

// Only what the leader itself must have handled moves the Deadline.
func TestDeadlineMovesWithAnswersOfTheLeaderOnly(t *testing.T) {
	ctx := t.Context()
	type step struct {
		name  string
		ask   func(s *session.Session) error
		moves bool
		fails error
		code  int32 // that the server is made to answer
	}
	steps := []step{
		{"get", func(s *session.Session) error { _, _, err := s.Get(ctx, "/"); return err }, false, nil, 0},
		{"exists", func(s *session.Session) error { _, _, err := s.Exists(ctx, "/"); return err }, false, nil, 0},
		{"children", func(s *session.Session) error { _, _, err := s.Children(ctx, "/"); return err }, false, nil, 0},
		{"watch", func(s *session.Session) error { _, _, _, err := s.WatchData(ctx, "/"); return err }, false, nil, 0},
		{"pings", func(s *session.Session) error { time.Sleep(3 * timeout); return nil }, false, nil, 0},
		{"sync", func(s *session.Session) error { return s.Sync(ctx, "/") }, true, nil, 0},
		{"create", func(s *session.Session) error { _, err := s.Create(ctx, "/a", nil, 0); return err }, true, nil, 0},
		{"create container", func(s *session.Session) error { return s.MakeDir(ctx, "/c") }, true, nil, 0},
		{"set", func(s *session.Session) error { _, err := s.Set(ctx, "/a", nil, 0); return err }, true, nil, 0},
		{"multi", func(s *session.Session) error {
			_, err := s.Multi(ctx, &zk.CheckVersionRequest{Path: "/a", Version: 1})
			return err
		}, true, nil, 0},
		{"refused create", func(s *session.Session) error { _, err := s.Create(ctx, "/a", nil, 0); return err }, true, zk.ErrNodeExists, 0},
		{"refused set", func(s *session.Session) error { _, err := s.Set(ctx, "/a", nil, 0); return err }, true, zk.ErrBadVersion, 0},
		{"delete", func(s *session.Session) error { return s.Delete(ctx, "/a", 1) }, true, nil, 0},
		{"refused delete", func(s *session.Session) error { return s.Delete(ctx, "/a", 1) }, true, zk.ErrNoNode, 0},
		// Followers give these answers by themselves: to what they throttle, to
		// what they do not know, and to what their own check of an ACL refuses.
		{"throttled", func(s *session.Session) error { return s.Delete(ctx, "/a", 1) }, false, zk.ErrUnknown, -127},
		{"unimplemented", func(s *session.Session) error { return s.Delete(ctx, "/a", 1) }, false, zk.ErrUnknown, -6},
		{"not authorised", func(s *session.Session) error { return s.Delete(ctx, "/a", 1) }, false, zk.ErrNoAuth, -102},
		{"read only", func(s *session.Session) error { return s.Delete(ctx, "/a", 1) }, false, zk.ErrUnknown, -119},
	}
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		ctx = t.Context()
		m := connect(t, srv, three)
		s := current(t, m)
		if got, want := time.Until(s.Deadline()), lease; got != want {
			t.Errorf("after the handshake the Deadline is in %v, want %v", got, want)
		}
		for _, step := range steps {
			time.Sleep(time.Millisecond)
			before := s.Deadline()
			if step.code != 0 {
				srv.Inject(zkserver.Fault{At: zkserver.BeforeReply, Op: zkserver.OpDelete, Do: zkserver.Error(step.code)})
			}
			asked := time.Now()
			if err := step.ask(s); !errors.Is(err, step.fails) {
				t.Fatalf("%s: error %v, want %v", step.name, err, step.fails)
			}
			want := before
			if step.moves {
				want = asked.Add(lease)
			}
			if got := s.Deadline(); !got.Equal(want) {
				t.Errorf("%s: the Deadline is %v later than expected", step.name, got.Sub(want))
			}
		}
		// A connection proves the leader too, from when the handshake was sent.
		time.Sleep(time.Second)
		release := make(chan struct{})
		srv.Inject(zkserver.Fault{Op: zkserver.OpConnect, Do: zkserver.Hold(release)})
		never := make(chan struct{})
		defer close(never)
		srv.Inject(zkserver.Fault{Op: zkserver.OpSync, Do: zkserver.Hold(never)})
		asked := time.Now()
		srv.Disconnect(s.ID())
		time.Sleep(time.Second)
		close(release)
		synctest.Wait()
		if got := s.Deadline(); !got.Equal(asked.Add(lease)) {
			t.Errorf("after a reconnect the Deadline is %v after the handshake was sent, want %v", got.Sub(asked), lease)
		}
	})
}

// The Deadline counts from before the request was sent, not from its answer.
func TestDeadlineCountsFromTheSending(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		time.Sleep(time.Second)
		srv.Inject(zkserver.Fault{Op: zkserver.OpSync, At: zkserver.BeforeReply, Do: zkserver.Delay(2 * time.Second)})
		asked := time.Now()
		if err := s.Sync(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		if got := s.Deadline().Sub(asked); got != lease {
			t.Errorf("the Deadline is %v after the sync was sent, want %v", got, lease)
		}
	})
}

func TestHeartbeatsWhileALeaseIsOpen(t *testing.T) {
	for _, strict := range []bool{false, true} {
		t.Run(map[bool]string{false: "sync", true: "strict"}[strict], func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				op, opts := zkserver.OpSync, []session.Option{}
				if strict {
					op, opts = zkserver.OpMulti, append(opts, session.WithStrictLease())
				}
				s := current(t, connect(t, srv, three, opts...))
				beats := func(d time.Duration) []zkserver.Op {
					srv.ResetOps()
					time.Sleep(d)
					var beats []zkserver.Op
					for _, o := range srv.Ops() {
						if o.Code == op {
							beats = append(beats, o)
						}
					}
					return beats
				}
				if n := len(beats(time.Hour)); n != 0 {
					t.Errorf("%d heartbeats though nothing depends on the session, want none", n)
				}
				l := s.Lease()
				time.Sleep(timeout / 6)
				got := beats(10 * timeout)
				if n := len(got); n != 60 {
					t.Errorf("%d heartbeats in ten session timeouts, want 60", n)
				}
				for i := 1; i < len(got); i++ {
					// ZooKeeper's clock counts whole milliseconds; ours does not.
					if d := got[i].Time.Sub(got[i-1].Time); d > timeout/6+time.Millisecond {
						t.Errorf("%v between heartbeats, want at most %v", d, timeout/6)
					}
				}
				if strict && len(got) > 0 && (len(got[0].Sub) != 0 || got[0].Err != 0) {
					t.Errorf("heartbeat %+v, want an empty transaction", got[0])
				}
				l.End()
				l.End()
				time.Sleep(timeout)
				if n := len(beats(time.Hour)); n != 0 {
					t.Errorf("%d heartbeats after the lease has ended, want none", n)
				}
			})
		})
	}
}

// Other requests to the leader do what a heartbeat does, and save it.
func TestRequestsSaveHeartbeats(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		create(t, s, "/a", 0)
		defer s.Lease().End()
		srv.ResetOps()
		for range 100 {
			if _, err := s.Set(t.Context(), "/a", nil, -1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(timeout / 10)
		}
		if n := count(srv.Ops(), zkserver.OpSync); n != 0 {
			t.Errorf("%d syncs beside a write each tenth of the timeout, want none", n)
		}
	})
}

func TestHoldNeedsAProof(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		time.Sleep(timeout)
		l := s.Lease()
		mustBe(t, l.Hold(), session.ErrStale)
		if err := s.Sync(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		if err := l.Hold(); err != nil {
			t.Errorf("behind a sync: %v", err)
		}
		if err := l.Hold(); err != nil {
			t.Errorf("held already: %v", err)
		}
		l.End()
		if err := l.Hold(); err == nil {
			t.Error("a lease that has ended can be held")
		}
		srv.ExpireSession(s.ID())
		<-s.Done()
		mustBe(t, s.Lease().Hold(), session.ErrLost)
		next := current(t, m)
		m.Close()
		mustBe(t, next.Lease().Hold(), session.ErrClosed)
	})
}

// Hold at any moment of the keeper's round: the context ends at the Deadline,
// to the microsecond, however little is left of the lease when it is called.
func TestContextEndsAtTheDeadlineExactly(t *testing.T) {
	for _, left := range []time.Duration{lease, lease / 2, timeout / 6, timeout / 12, time.Second, 100 * time.Millisecond, 3 * time.Millisecond, time.Microsecond} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s := current(t, connect(t, srv, three))
			// Out of step with the keeper, which looks each sixth of the timeout.
			time.Sleep(700 * time.Millisecond)
			if err := s.Sync(t.Context(), "/"); err != nil {
				t.Fatal(err)
			}
			srv.Partition(s.ID())
			time.Sleep(lease - left)
			l := s.Lease()
			defer l.End()
			deadline := s.Deadline()
			if err := l.Hold(); err != nil {
				t.Fatalf("%v before the Deadline: %v", left, err)
			}
			<-s.Done()
			if late := time.Since(deadline); late != 0 {
				t.Errorf("held %v before the Deadline, the context ended %v after it", left, late)
			}
			if !errors.Is(context.Cause(s.Context()), session.ErrLost) {
				t.Errorf("the cause is %v, want ErrLost", context.Cause(s.Context()))
			}
		})
	}
}
