package session_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A request of one session never runs under the next: a request that is queued or unanswered when its session expires
// fails.
func TestQueuedRequestNeverRunsUnderTheNextSession(t *testing.T) {
	for _, way := range []string{"while disconnected", "while connected, unanswered", "by another session id"} {
		t.Run(way, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := connect(t, srv, three)
				old := current(t, m)
				const n = 20
				errs := make(chan error, n)
				ask := func() {
					for range n {
						go func() {
							_, err := old.Create(t.Context(), "/queued-", nil, zk.FlagSequence)
							errs <- err
						}()
					}
					synctest.Wait()
				}
				switch way {
				case "while disconnected":
					srv.Stop()
					synctest.Wait()
					ask()
					if err := srv.Start(); err != nil {
						t.Fatal(err)
					}
					if err := srv.ExpireSession(old.ID()); err != nil {
						t.Fatal(err)
					}
				case "while connected, unanswered":
					srv.Freeze()
					ask()
					if err := srv.ExpireSession(old.ID()); err != nil {
						t.Fatal(err)
					}
					srv.Thaw()
				case "by another session id":
					srv.SwapSessionID(old.ID())
					srv.Stop()
					synctest.Wait()
					ask()
					if err := srv.Start(); err != nil {
						t.Fatal(err)
					}
				}
				for range n {
					err := <-errs
					// The caller of an unanswered request may get the outcome after the end of the session. Both
					// errors report that the request may have happened.
					if way == "while connected, unanswered" && !errors.Is(err, session.ErrLost) {
						mustBe(t, err, session.ErrConnectionLost, zk.ErrConnectionClosed)
					} else {
						mustBe(t, err, session.ErrLost, zk.ErrSessionExpired)
					}
				}
				<-old.Done()
				mustBe(t, old.Err(), session.ErrLost)
				next := current(t, m)
				if next == old || next.ID() == old.ID() {
					t.Fatalf("session %#x goes on after its expiry", old.ID())
				}
				// A request that is still queued would be sent by now.
				time.Sleep(time.Minute)
				for _, op := range srv.Ops() {
					if op.Session != old.ID() && op.Path == "/queued-" {
						t.Errorf("session %#x was asked what was meant for %#x: %+v", op.Session, old.ID(), op)
					}
				}
				if names, _ := srv.Children("/"); len(names) != 1 {
					t.Errorf("znodes %v, want none", names)
				}
				if _, err := old.Create(t.Context(), "/late", nil, 0); err == nil {
					t.Error("the lost session takes a request")
				} else {
					mustBe(t, err, session.ErrLost)
				}
			})
		})
	}
}

// A session outlives its connections: no new session begins while the server knows the old one.
func TestOneSessionOverManyConnections(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		create(t, s, "/e", zk.FlagEphemeral)
		for range 20 {
			before := s.Connection()
			if err := srv.Disconnect(s.ID()); err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.Get(t.Context(), "/e"); err != nil {
				t.Fatal(err)
			}
			if s.Connection() <= before {
				t.Errorf("connection %d after %d, want a greater number", s.Connection(), before)
			}
		}
		if current(t, m) != s || len(srv.Sessions()) != 1 {
			t.Errorf("%d sessions, want the one that there was", len(srv.Sessions()))
		}
	})
}
