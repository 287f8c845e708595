package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Only a transaction of the session that a quorum has committed moves the Deadline: reads, pings, syncs and reconnects
// do not.
func TestDeadlineMovesWithCommitsOnly(t *testing.T) {
	ctx := t.Context()
	type step struct {
		name  string
		ask   func(s *session.Session) error
		moves bool
		fails error
		code  zkserver.Code // the code that the server answers
	}
	steps := []step{
		{"get", func(s *session.Session) error { _, _, err := s.Get(ctx, "/"); return err }, false, nil, 0},
		{"exists", func(s *session.Session) error { _, _, err := s.Exists(ctx, "/"); return err }, false, nil, 0},
		{"children", func(s *session.Session) error { _, _, err := s.Children(ctx, "/"); return err }, false, nil, 0},
		{"watch", func(s *session.Session) error { _, _, _, err := s.WatchData(ctx, "/"); return err }, false, nil, 0},
		{"pings", func(s *session.Session) error { time.Sleep(3 * timeout); return nil }, false, nil, 0},
		{"sync", func(s *session.Session) error { return s.Sync(ctx, "/") }, false, nil, 0},
		{"create", func(s *session.Session) error { _, err := s.Create(ctx, "/a", nil, 0); return err }, true, nil, 0},
		{"create container", func(s *session.Session) error { return s.MakeDir(ctx, "/c") }, true, nil, 0},
		{"set", func(s *session.Session) error { _, err := s.Set(ctx, "/a", nil, 0); return err }, true, nil, 0},
		{"multi", func(s *session.Session) error {
			_, err := s.Multi(ctx, &zk.CheckVersionRequest{Path: "/a", Version: 1})
			return err
		}, true, nil, 0},
		{"empty multi", func(s *session.Session) error { _, err := s.Multi(ctx); return err }, false, nil, 0},
		{"refused multi", func(s *session.Session) error {
			_, err := s.Multi(ctx, &zk.CheckVersionRequest{Path: "/a", Version: 1}, &zk.CheckVersionRequest{Path: "/a", Version: 9})
			return err
		}, false, zk.ErrBadVersion, 0},
		{"refused create", func(s *session.Session) error { _, err := s.Create(ctx, "/a", nil, 0); return err }, false, zk.ErrNodeExists, 0},
		{"refused set", func(s *session.Session) error { _, err := s.Set(ctx, "/a", nil, 0); return err }, false, zk.ErrBadVersion, 0},
		{"delete", func(s *session.Session) error { return s.Delete(ctx, "/a", 1) }, true, nil, 0},
		{"refused delete", func(s *session.Session) error { return s.Delete(ctx, "/a", 1) }, false, zk.ErrNoNode, 0},
		{"not authorised", func(s *session.Session) error { return s.Delete(ctx, "/a", 1) }, false, zk.ErrNoAuth, -102},
	}
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		ctx = t.Context()
		m := connect(t, srv, three)
		s := current(t, m)
		if !s.Deadline().IsZero() {
			t.Errorf("before the first commit the Deadline is in %v, want none", time.Until(s.Deadline()))
		}
		for _, step := range steps {
			time.Sleep(2 * timeout) // so that older contacts were reported
			before := s.Deadline()
			if step.code != 0 {
				srv.Inject(zkserver.Fault{At: zkserver.BeforeReply, Op: zkserver.OpDelete, Do: zkserver.Error(step.code)})
			}
			if err := step.ask(s); !errors.Is(err, step.fails) {
				t.Fatalf("%s: error %v, want %v", step.name, err, step.fails)
			}
			switch got := s.Deadline(); {
			case !step.moves && !got.Equal(before):
				t.Errorf("%s: the Deadline has moved by %v", step.name, got.Sub(before))
			case step.moves && !got.After(time.Now()):
				t.Errorf("%s: the Deadline passed %v ago", step.name, time.Since(got))
			}
		}
		// A ConnectResponse and the sync after it prove nothing about a quorum.
		time.Sleep(2 * timeout)
		before := s.Deadline()
		srv.Disconnect(s.ID())
		time.Sleep(time.Second)
		if got := s.Deadline(); !got.Equal(before) {
			t.Errorf("a reconnect has moved the Deadline by %v", got.Sub(before))
		}
	})
}

// requests counts the requests of a session while d passes: all requests, and the transactions.
func requests(srv *zksynctest.Server, id int64, d time.Duration) (all, commits int, ops []zkserver.Op) {
	srv.ResetOps()
	time.Sleep(d)
	for _, op := range srv.Ops() {
		if op.Session != id {
			continue
		}
		all++
		if op.Code == zkserver.OpMulti {
			commits++
		}
		ops = append(ops, op)
	}
	return all, commits, ops
}

// While something is held or next in line, a session makes twelve requests per timeout, five of them transactions,
// and an idle session makes four.
func TestPaceOfASession(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		check := func(when string, want, wantCommits int, idle zkserver.OpCode) {
			t.Helper()
			all, commits, ops := requests(srv, s.ID(), 10*timeout)
			if all < 10*want-2 || all > 10*want+2 || commits < 10*wantCommits-1 || commits > 10*wantCommits+1 {
				t.Errorf("%s: %d requests and %d commits in ten timeouts, want %d and %d", when, all, commits, 10*want, 10*wantCommits)
			}
			for _, op := range ops {
				switch op.Code {
				case idle:
				case zkserver.OpMulti:
					if len(op.Sub) != 1 || op.Sub[0].Code != zkserver.OpCheck || op.Err != 0 {
						t.Errorf("%s: commit %+v, want one check", when, op)
					}
				default:
					t.Errorf("%s: %v, want %v or a commit", when, op.Code, idle)
				}
			}
		}
		check("never held", 4, 0, zkserver.OpPing)
		time.Sleep(time.Second) // not at the time of a ping
		l := s.Lease()
		check("far back in line", 4, 0, zkserver.OpSync)
		path := create(t, s, "/mine", zk.FlagEphemeral)
		l.Own(path)
		l.Prepare()
		time.Sleep(timeout)
		check("next in line", 12, 5, zkserver.OpSync)
		if err := l.Hold(); err != nil {
			t.Fatal(err)
		}
		check("held", 12, 5, zkserver.OpSync)
		other := s.Lease() // per session, not per lock
		if err := other.Hold(); err != nil {
			t.Fatal(err)
		}
		check("held twice", 12, 5, zkserver.OpSync)
		other.End()
		l.Prepare()
		check("lingering", 12, 5, zkserver.OpSync)
		l.End()
		l.End()
		time.Sleep(timeout)
		check("ended", 4, 0, zkserver.OpSync)

		// Reads do not delay the requests that reach the leader.
		srv.ResetOps()
		for range 100 {
			if _, _, err := s.Exists(t.Context(), "/"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(timeout / 10)
		}
		if n := count(srv.Ops(), zkserver.OpSync); n < 39 || n > 41 {
			t.Errorf("%d syncs beside reads in ten timeouts, want 40", n)
		}
	})
}

// A hold costs at most twelve requests, five of them transactions, in its first timeout as in later ones, regardless of
// the time for which the session was idle before. To see this test fail, have keeper.planCommit make an early commit
// only when the deadline is near, and not in place of the contact before.
func TestPaceAtTheStartOfAHold(t *testing.T) {
	const timeout = 12 * time.Second // has twelfths and fifths without a rest
	for idle := time.Duration(0); idle < timeout; idle += timeout / 111 {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s := current(t, connect(t, srv, three, session.WithTimeout(timeout)))
			s.Lease().End() // it has held before
			time.Sleep(5*timeout + idle)
			l := s.Lease()
			l.Own(create(t, s, "/mine", zk.FlagEphemeral))
			began := time.Now()
			if err := l.Grant(t.Context()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != 0 {
				t.Errorf("idle for %v: the grant took %v", idle, took)
			}
			for _, nth := range []string{"first", "second"} {
				all, commits, _ := requests(srv, s.ID(), timeout-1)
				if all > 12 || commits > 5 {
					t.Errorf("idle for %v: %d requests and %d commits in the %s timeout of a hold", idle, all, commits, nth)
				}
				if s.Context().Err() != nil {
					t.Fatalf("idle for %v: lost: %v", idle, s.Err())
				}
			}
		})
	}
}

// A commit that a server refuses is repeated in place of the next contact, so that a connection that breaks a little later
// does not cost the session.
func TestARefusedCommitIsRepeatedSoon(t *testing.T) {
	for nth := 1; nth <= 5; nth++ { // the commits of a timeout have different distances
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s := current(t, connect(t, srv, three))
			hold(t, s)
			time.Sleep(timeout)
			srv.ResetOps()
			srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Nth: nth, Do: zksynctest.Error(-127)})
			time.Sleep(2 * timeout)
			var refused time.Time
			for _, op := range srv.Ops() {
				switch {
				case op.Code != zkserver.OpMulti:
				case op.Err != 0 || op.Fault != "":
					refused = op.Time
				case !refused.IsZero():
					if took := op.Time.Sub(refused); took > timeout/12+timeout/100 {
						t.Errorf("commit %d was repeated after %v, want T/12, %v", nth, took, timeout/12)
					}
					refused = time.Time{}
				}
			}
		})
	}
}

// Requests of callers replace contacts that the session would otherwise make.
func TestRequestsSaveContacts(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		create(t, s, "/a", 0)
		hold(t, s)
		time.Sleep(timeout)
		srv.ResetOps()
		for range 200 {
			if _, err := s.Set(t.Context(), "/a", nil, -1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(timeout / 20)
		}
		if syncs, multis := count(srv.Ops(), zkserver.OpSync), count(srv.Ops(), zkserver.OpMulti); syncs+multis != 0 {
			t.Errorf("%d syncs and %d commits beside a write each twentieth of the timeout, want none", syncs, multis)
		}
	})
}

// Hold fails with ErrStale until the session is proven alive, and with ErrLost or ErrClosed when it is over.
func TestHoldNeedsAProof(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		l := s.Lease()
		time.Sleep(2 * timeout)
		mustBe(t, l.Hold(), session.ErrStale)
		if err := s.Sync(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		mustBe(t, l.Hold(), session.ErrStale)
		if err := l.Grant(t.Context()); err != nil {
			t.Errorf("Grant: %v", err)
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
		mustBe(t, next.Lease().Grant(t.Context()), session.ErrClosed)
	})
}

// Grant returns with its ctx, and the lease is then not held.
func TestGrantEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		l := s.Lease()
		defer l.End()
		time.Sleep(2 * timeout)
		never := make(chan struct{})
		defer close(never)
		srv.Inject(zkserver.Fault{Op: zkserver.OpMulti, Do: zkserver.Hold(never)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		within(t, time.Second, "Grant", func() { mustBe(t, l.Grant(ctx), context.DeadlineExceeded) })
		srv.Partition(s.ID())
		time.Sleep(timeout / 2)
		if s.Context().Err() != nil {
			t.Errorf("the session was lost though nothing was held: %v", s.Err())
		}
	})
}

// A leader that was paused may be about to end a session that sent only pings for long: a grant waits for a quarter
// of the timeout, once.
func TestAFirstGrantWaitsForALapseToEnd(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		time.Sleep(10 * timeout)
		l := s.Lease()
		l.Own(create(t, s, "/mine", zk.FlagEphemeral))
		mustBe(t, l.Hold(), session.ErrStale)
		began := time.Now()
		if err := l.Grant(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != timeout/4 {
			t.Errorf("the first grant took %v, want a quarter of the timeout", took)
		}
		l.End()
		time.Sleep(10 * timeout)
		l = s.Lease()
		l.Own(create(t, s, "/again", zk.FlagEphemeral))
		if err := l.Hold(); err != nil {
			t.Errorf("later: %v", err)
		}
	})
}

// A lease whose znode was removed is not granted, and does not end the session.
func TestALeaseWithoutItsZnode(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		held, gone := s.Lease(), s.Lease()
		held.Own(create(t, s, "/held", zk.FlagEphemeral))
		if err := held.Grant(t.Context()); err != nil {
			t.Fatal(err)
		}
		gone.Own(create(t, s, "/gone", zk.FlagEphemeral))
		time.Sleep(timeout)
		for _, path := range []string{"/held", "/gone"} {
			if err := s.Delete(t.Context(), path, -1); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(timeout)
		mustBe(t, held.Hold(), session.ErrNotOwned)
		s.Lease().End()
		gone.Prepare()
		time.Sleep(timeout)
		mustBe(t, gone.Grant(t.Context()), session.ErrNotOwned)
		time.Sleep(10 * timeout)
		srv.Partition(s.ID())
		time.Sleep(timeout * 8 / 10)
		if s.Context().Err() != nil {
			t.Fatalf("the session was lost: %v", s.Err())
		}
		srv.Heal(s.ID())
		time.Sleep(timeout)

		// Neither of the two leases counts any more, and another lease does.
		held.End()
		gone.End()
		hold(t, s)
		time.Sleep(timeout)
		srv.Partition(s.ID())
		deadline := s.Deadline()
		<-s.Done()
		if late := time.Since(deadline); late != 0 {
			t.Errorf("the context of another hold ended %v after the Deadline", late)
		}
	})
}

// A lease whose znode may not be read is granted, and a check of another znode proves it.
func TestALeaseOfAZnodeThatMayNotBeRead(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		path, err := s.Create(t.Context(), "/mine", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermDelete)...)
		if err != nil {
			t.Fatal(err)
		}
		l := s.Lease()
		l.Own(path)
		if err := l.Grant(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * timeout)
		if s.Context().Err() != nil {
			t.Errorf("the session was lost: %v", s.Err())
		}
		// Without any znode to check, the session is lost in time, and requests to the servers have pauses.
		for _, path := range []string{"/zookeeper/config", "/zookeeper", "/"} {
			srv.Inject(zkserver.Fault{Op: zkserver.OpMulti, Path: path, Times: -1, At: zkserver.BeforeCommit, Do: zkserver.Error(-102)})
		}
		srv.ResetOps()
		time.Sleep(timeout)
		if n := count(srv.Ops(), zkserver.OpMulti); n < 5 || n > 40 {
			t.Errorf("%d commits were tried in a timeout", n)
		}
		mustBe(t, s.Err(), session.ErrLost)
	})
}

// held returns a lease that is held, of the znode at path.
func held(t *testing.T, s *session.Session, path string) *session.Lease {
	t.Helper()
	l := s.Lease()
	l.Own(path)
	if err := l.Grant(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

// The transactions of a session check the znodes of its holds in turn, so that the removal of each of n znodes is
// found in n fifths of the session timeout.
func TestChecksOfManyHoldsTakeTurns(t *testing.T) {
	const n = 20
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		gone := make(chan string, n)
		for i := range n {
			path := fmt.Sprintf("/mine-%d", i)
			create(t, s, path, zk.FlagEphemeral)
			l := held(t, s, path)
			defer l.End()
			l.NotifyGone(func() { gone <- path })
		}
		srv.ResetOps()
		create(t, s, "/short", zk.FlagEphemeral)
		for range n + 1 {
			short := held(t, s, "/short")
			time.Sleep(timeout / 5)
			short.End()
		}
		checked := make(map[string]bool)
		for _, op := range srv.Ops() {
			if op.Code == zkserver.OpMulti && op.Sub[0].Path != "/short" {
				checked[op.Sub[0].Path] = true
			}
		}
		if len(checked) != n {
			t.Errorf("%d of %d znodes were checked in %d fifths of the timeout, beside short holds", len(checked), n, n+1)
		}
		for i := range n {
			path := fmt.Sprintf("/mine-%d", i)
			time.Sleep(timeout / 3)
			if err := srv.Delete(path); err != nil {
				t.Fatal(err)
			}
			select {
			case found := <-gone:
				if found != path {
					t.Errorf("the removal of %s was found, and %s was removed", found, path)
				}
			case <-time.After((n-time.Duration(i)+1)*timeout/5 + timeout/12):
				t.Fatalf("the removal of one of %d znodes was not found in %d fifths of the timeout", n-i, n-i+1)
			}
		}
	})
}

// The holder of a znode that it may not read is told that the znode was removed, although servers hide the event.
func TestRemovalOfAZnodeThatMayNotBeRead(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		var paths []string
		gone := make(chan string, 3)
		for i, perms := range []int32{zk.PermDelete, zk.PermDelete, zk.PermAll} {
			path, err := s.Create(t.Context(), fmt.Sprintf("/mine-%d", i), nil, zk.FlagEphemeral, zk.WorldACL(perms)...)
			if err != nil {
				t.Fatal(err)
			}
			l := held(t, s, path)
			defer l.End()
			l.NotifyGone(func() { gone <- path })
			paths = append(paths, path)
		}
		time.Sleep(2 * timeout)
		for _, path := range paths {
			if len(gone) > 0 {
				t.Fatalf("%s is said to be gone, and is not", <-gone)
			}
			if err := srv.Delete(path); err != nil {
				t.Fatal(err)
			}
			time.Sleep(timeout)
			select {
			case found := <-gone:
				if found != path {
					t.Errorf("the removal of %s was found, and %s was removed", found, path)
				}
			default:
				t.Errorf("the removal of %s was not found in a session timeout", path)
			}
		}
		if s.Err() != nil {
			t.Errorf("the session was lost: %v", s.Err())
		}
	})
}

// While something is held the context of the session ends at the Deadline, to the microsecond, regardless of the time
// of Hold.
func TestContextEndsAtTheDeadlineExactly(t *testing.T) {
	const whole = timeout * 19 / 20
	for _, left := range []time.Duration{whole, whole / 2, timeout * 2 / 5, timeout*3/8 + time.Microsecond} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s := current(t, connect(t, srv, three))
			l := s.Lease()
			defer l.End()
			create(t, s, "/mine", zk.FlagEphemeral) // the first commit
			deadline := s.Deadline()
			if got := time.Until(deadline); got != whole {
				t.Fatalf("the Deadline is in %v, want %v", got, whole)
			}
			srv.Partition(s.ID())
			time.Sleep(whole - left)
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

// A holder learns that its machine was suspended for longer than the lease, although monotonic time stood still.
func TestASuspendedMachineLosesItsHold(t *testing.T) {
	for _, slept := range []time.Duration{timeout / 5, 2 * timeout} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			var suspended atomic.Int64
			s := current(t, connect(t, srv, three, session.WithSuspension(func() time.Duration { return time.Duration(suspended.Load()) })))
			hold(t, s)
			time.Sleep(timeout)
			suspended.Store(int64(slept))
			if slept > timeout {
				if left := time.Until(s.Deadline()); left > 0 {
					t.Errorf("after a suspension of %v the Deadline is in %v", slept, left)
				}
				select {
				case <-s.Done():
				case <-time.After(timeout / 12):
					t.Errorf("after a suspension of %v the context lives", slept)
				}
				mustBe(t, s.Err(), session.ErrLost)
				return
			}
			mustBe(t, s.Lease().Hold(), session.ErrStale)
			time.Sleep(timeout)
			if s.Err() != nil {
				t.Errorf("after a suspension of %v: %v", slept, s.Err())
			}
			if err := s.Lease().Hold(); err != nil {
				t.Errorf("a timeout after a suspension of %v: %v", slept, err)
			}
		})
	}
}

// While something is held, a connection without answers is closed after a quarter of the timeout.
func TestASilentConnectionIsDropped(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		hold(t, s)
		time.Sleep(timeout)
		states := m.States(t.Context())
		<-states
		srv.Partition(s.ID())
		cut := time.Now()
		if st := <-states; st != session.Suspended {
			t.Fatalf("%v, want Suspended", st)
		}
		if took := time.Since(cut); took < timeout/4 || took > timeout/4+timeout/12 {
			t.Errorf("dropped after %v, want T/4 after the next contact", took)
		}
		synctest.Wait()
	})
}
