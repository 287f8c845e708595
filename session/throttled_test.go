package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// throttled is the code of a request that a server has set aside under load.
const throttled = -127

func notPing(op zkserver.Op) bool { return op.Code != zkserver.OpPing }

// A request that is throttled is sent again until it is carried out, and the caller does not notice. To see this test
// fail, make requester.try return every answer.
func TestThrottledRequestsAreRepeated(t *testing.T) {
	for name, call := range everyCall {
		t.Run(name, func(t *testing.T) {
			for times := 1; times <= 3; times++ {
				for step, hit := 1, true; hit; step++ {
					bubble(t, func(t *testing.T, srv *zksynctest.Server) {
						m := connect(t, srv, three)
						s := current(t, m)
						create(t, s, "/node", 0)
						injected := srv.Inject(zkserver.Fault{Session: s.ID(), Nth: step, Times: times, Match: notPing, Do: zkserver.Error(throttled)})
						if err := call(t.Context(), m, s); err != nil {
							t.Errorf("request %d throttled %d times: %v", step, times, err)
						}
						hit = injected.Count() > 0
					})
				}
			}
		})
	}
}

// A request that is always throttled is sent at growing intervals, and ends with ctx, with the session and with the
// Manager. It delays no other request, and is not carried out afterwards.
func TestThrottledUntilTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Times: -1, Do: zkserver.Error(throttled)})
		ask := func(ctx context.Context) <-chan error {
			done := make(chan error, 1)
			go func() { _, err := s.Create(ctx, "/x", nil, zk.FlagEphemeral); done <- err }()
			synctest.Wait()
			return done
		}
		srv.ResetOps()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := <-ask(ctx)
		mustBe(t, err, context.DeadlineExceeded)
		if n := count(srv.Ops(), zkserver.OpCreate); n < 30 || n > 150 {
			t.Errorf("%d requests in a minute, want about one a second", n)
		}
		within(t, 0, "another request", func() {
			if _, _, err := s.Exists(t.Context(), "/"); err != nil {
				t.Error(err)
			}
		})
		lost := ask(t.Context())
		if err := srv.ExpireSession(s.ID()); err != nil {
			t.Fatal(err)
		}
		mustBe(t, <-lost, session.ErrLost)
		s = current(t, m)
		closed := ask(t.Context())
		within(t, 2*time.Second, "Close", func() { m.Close() })
		mustBe(t, <-closed, session.ErrClosed)
		mustExist(t, srv, "/x", false)
	})
}

// An answer that leaves the outcome of its request open is treated like a lost answer: a read is repeated, a
// protected create is looked up, and any other write reports this to its caller.
func TestAnswersWithoutAnOutcome(t *testing.T) {
	for _, code := range []zkserver.Code{-4, -7, -122} {
		for _, at := range []zkserver.Moment{zkserver.BeforeCommit, zkserver.AfterCommit} {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				s := current(t, connect(t, srv, three))
				create(t, s, "/dir", 0)
				fault := func(op zkserver.OpCode) { srv.Inject(zkserver.Fault{Op: op, At: at, Do: zkserver.Error(code)}) }
				fault(zkserver.OpGetData)
				if _, _, err := s.Get(t.Context(), "/dir"); err != nil {
					t.Errorf("code %d %v: Get: %v", code, at, err)
				}
				fault(zkserver.OpCreate)
				path, err := s.CreateProtected(t.Context(), "/dir/x-", nil, zk.FlagEphemeralSequential)
				if err != nil {
					t.Errorf("code %d %v: CreateProtected: %v", code, at, err)
				}
				if names := children(srv, "/dir"); len(names) != 1 || "/dir/"+names[0] != path {
					t.Errorf("code %d %v: %s was created, and there are %v", code, at, path, names)
				}
				fault(zkserver.OpCreate)
				_, err = s.Create(t.Context(), "/y", nil, 0)
				mustBe(t, err, session.ErrConnectionLost)
			})
		}
	}
}
