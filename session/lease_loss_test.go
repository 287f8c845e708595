package session_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// The context of a hold ends, on a local clock, before the servers can give the held znode to another client. For
// every cause that cuts a holder off from the leader, the context ends no later than the Deadline. The Deadline is
// two thirds of the timeout after the last proof, and before the server removes the znode.
func TestHolderLearnsBeforeTheServerGivesAway(t *testing.T) {
	cuts := map[string]func(srv *zksynctest.Server, id int64){
		"partition":        func(srv *zksynctest.Server, id int64) { srv.Partition(id) },
		"cut off follower": func(srv *zksynctest.Server, id int64) { srv.CutFromLeader(id, true); srv.HangHandshake(true) },
	}
	for name, cut := range cuts {
		for _, after := range []time.Duration{0, time.Second, timeout / 6, 2300 * time.Millisecond, timeout / 3, 7 * time.Second} {
			t.Run(name+" after "+after.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					s := current(t, connect(t, srv, three))
					other := current(t, connect(t, srv, three))
					create(t, s, "/held", zk.FlagEphemeral)
					hold(t, s)
					time.Sleep(after)
					_, _, gone, err := other.ExistsW(t.Context(), "/held")
					if err != nil {
						t.Fatal(err)
					}
					cut(srv, s.ID())
					start := time.Now()
					deadline := s.Deadline()
					ev := <-gone
					if ev.Type != zk.EventNodeDeleted {
						t.Fatalf("event %+v, want the removal of the ephemeral", ev)
					}
					given := time.Now()
					if s.Context().Err() == nil {
						t.Fatal("the server gave it away while its holder's context lived")
					}
					if early := given.Sub(deadline); early <= 0 {
						t.Errorf("the server gave it away %v before the Deadline", -early)
					}
					if took := given.Sub(start); took > 2*timeout {
						t.Errorf("given away after %v", took)
					}
				})
			})
		}
	}
}

// A holder leaves a follower that is cut off from its leader for another server, well within the lease.
func TestHolderLeavesAFollowerThatIsCutOff(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		create(t, s, "/held", zk.FlagEphemeral)
		hold(t, s)
		states := m.States(t.Context())
		<-states
		before := s.Connection()
		proven := time.Now()
		srv.CutFromLeader(s.ID(), true)
		if st := <-states; st != session.Suspended {
			t.Fatalf("%v, want Suspended", st)
		}
		// There is a contact after at most T/12, and its answer may take T/4.
		if took, want := time.Since(proven), timeout/12+timeout/4; took > want {
			t.Errorf("the silent connection was closed after %v, want at most %v", took, want)
		}
		time.Sleep(10 * timeout)
		if s.Context().Err() != nil {
			t.Errorf("the session is lost: %v", s.Err())
		}
		if s.Connection() == before {
			t.Error("still on the connection that no longer reaches the leader")
		}
		mustExist(t, srv, "/held", true)
	})
}

// A lost connection or a restart of the server within the lease costs a holder nothing.
func TestReconnectAndRestartWithinTheLeaseCostNothing(t *testing.T) {
	for name, trouble := range map[string]func(srv *zksynctest.Server, s *session.Session) error{
		"disconnect": func(srv *zksynctest.Server, s *session.Session) error { return srv.Disconnect(s.ID()) },
		"restart":    func(srv *zksynctest.Server, s *session.Session) error { return srv.Restart() },
		"down for a while": func(srv *zksynctest.Server, s *session.Session) error {
			srv.Stop()
			time.Sleep(timeout / 4)
			return srv.Start()
		},
		"frozen for a while": func(srv *zksynctest.Server, s *session.Session) error {
			srv.Freeze()
			time.Sleep(timeout / 4)
			srv.Thaw()
			return nil
		},
		"cut off for a while": func(srv *zksynctest.Server, s *session.Session) error {
			srv.Partition(s.ID())
			time.Sleep(timeout / 4)
			srv.Heal(s.ID())
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := connect(t, srv, three)
				s := current(t, m)
				create(t, s, "/held", zk.FlagEphemeral)
				hold(t, s)
				for range 10 {
					if err := trouble(srv, s); err != nil {
						t.Fatal(err)
					}
					time.Sleep(timeout)
					if s.Context().Err() != nil {
						t.Fatalf("the holder has lost it: %v", s.Err())
					}
					if m.State() != session.Connected {
						t.Fatalf("the Manager is %v, want Connected", m.State())
					}
				}
				mustExist(t, srv, "/held", true)
			})
		})
	}
}

// A session that holds nothing is lost only when the server says so, or when no answer came for the whole timeout.
func TestASessionThatHoldsNothingLivesForTheTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		srv.Partition(s.ID())
		time.Sleep(timeout * 9 / 10)
		if s.Context().Err() != nil {
			t.Fatalf("lost after 0.9 T: %v", s.Err())
		}
		srv.Heal(s.ID())
		time.Sleep(timeout)
		if s.Context().Err() != nil || m.State() != session.Connected {
			t.Fatalf("not connected again: %v, %v", m.State(), s.Err())
		}

		heard := time.Now()
		if _, _, err := s.Get(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		srv.Partition(s.ID())
		<-s.Done()
		if took := time.Since(heard); took != timeout {
			t.Errorf("lost %v after the last answer, want %v", took, timeout)
		}
		mustBe(t, s.Err(), session.ErrLost)
	})
}

// A session that only the client gave up is closed on the server as soon as a server can be reached.
func TestALostSessionIsClosedOnTheServer(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		create(t, s, "/held", zk.FlagEphemeral)
		hold(t, s)
		srv.Partition(s.ID())
		<-s.Done()
		next := current(t, m)
		mustExist(t, srv, "/held", true)
		// The reply to the first attempt is lost, and the server closes the connection of the second attempt: neither
		// attempt may count as a success.
		srv.Inject(zkserver.Fault{Session: s.ID(), Op: zkserver.OpCloseSession, At: zkserver.BeforeCommit, Do: zkserver.Disconnect})
		srv.Heal(s.ID())
		healed := time.Now()
		for {
			if _, ok := sessionOf(srv, s.ID()); !ok {
				break
			}
			time.Sleep(10 * time.Millisecond)
			if time.Since(healed) > 2500*time.Millisecond {
				t.Fatal("the lost session is still on the server, long after it could be reached")
			}
		}
		mustExist(t, srv, "/held", false)
		if err := next.Sync(t.Context(), "/"); err != nil {
			t.Error(err)
		}
	})
}

// A lost session is closed on the server although the server has refused the first closeSession by an internal error.
func TestALostSessionIsClosedAfterARefusal(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three, session.WithTimeout(30*time.Second)))
		create(t, s, "/held", zk.FlagEphemeral)
		hold(t, s)
		refused := srv.Inject(zkserver.Fault{Op: zkserver.OpMulti, Times: -1, Do: zkserver.Error(-1)})
		srv.Inject(zkserver.Fault{Op: zkserver.OpCloseSession, Do: zkserver.Error(-1)})
		<-s.Done()
		refused.Remove()
		time.Sleep(5 * time.Second)
		mustExist(t, srv, "/held", false)
	})
}

// Close of the Manager takes bounded time while a lost session cannot be closed on the server.
func TestCloseWhileALostSessionIsBeingClosedOnTheServer(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		hold(t, s)
		srv.Freeze()
		<-s.Done()
		time.Sleep(time.Second)
		within(t, 1100*time.Millisecond, "Close", func() { m.Close() })
	})
}

// The context of a session ends with a cause that matches ErrLost or ErrClosed and the errors of go-zookeeper.
func TestSessionContextEndsWithItsCause(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		if s.Err() != nil {
			t.Errorf("Err of a live session: %v", s.Err())
		}
		srv.ExpireSession(s.ID())
		<-s.Context().Done()
		mustBe(t, context.Cause(s.Context()), session.ErrLost, zk.ErrSessionExpired)
		mustBe(t, s.Err(), session.ErrLost)
		s = current(t, m)
		m.Close()
		mustBe(t, context.Cause(s.Context()), session.ErrClosed, zk.ErrClosing)
		if errors.Is(s.Err(), session.ErrLost) {
			t.Errorf("%v, want ErrClosed alone", s.Err())
		}
		synctest.Wait()
	})
}

// While something is held, a new connection must be established within a sixth of the session timeout, so that there
// is time to try another server.
func TestDialsOfAHolderAreShort(t *testing.T) {
	for _, held := range []bool{true, false} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			var mu sync.Mutex
			var dials []time.Time
			s := current(t, connect(t, srv, three, session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
				mu.Lock()
				dials = append(dials, time.Now())
				mu.Unlock()
				return srv.Dial(ctx, network, address)
			})))
			if held {
				hold(t, s)
			}
			time.Sleep(timeout)
			srv.HangHandshake(true)
			dials = nil
			srv.Disconnect(s.ID())
			time.Sleep(timeout / 4)
			mu.Lock()
			defer mu.Unlock()
			if want := map[bool]int{true: 2, false: 1}[held]; len(dials) != want {
				t.Errorf("held %v: %d dials in a quarter of the timeout, want %d", held, len(dials), want)
			}
		})
	}
}
