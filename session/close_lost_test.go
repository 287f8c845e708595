package session_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// loseLock loses a session, which holds the ephemeral /lock, by a cut between it and the server.
func loseLock(t testing.TB, srv *zksynctest.Server, s *session.Session) {
	t.Helper()
	create(t, s, "/lock", zk.FlagEphemeral)
	hold(t, s)
	srv.Partition(s.ID())
	<-s.Done()
}

// mustCloseOnServer closes a Manager, and fails the test unless its ephemeral /lock is gone when Close returns, soon.
func mustCloseOnServer(t testing.TB, srv *zksynctest.Server, m *session.Manager) {
	t.Helper()
	within(t, 1100*time.Millisecond, "Close", func() { m.Close() })
	mustExist(t, srv, "/lock", false)
}

// Close closes the session on a server that lags behind what the session has seen.
func TestCloseOnAServerThatLags(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		e := zksynctest.StartEnsemble(t, 3)
		var moved atomic.Bool
		m := connect(t, e.Server, three, session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			if moved.Load() {
				return e.Endpoint(1).Dial(ctx, network, address)
			}
			return e.Endpoint(2).Dial(ctx, network, address)
		}))
		s := current(t, m)
		create(t, s, "/lock", zk.FlagEphemeral)
		e.Endpoint(1).Lag()
		create(t, s, "/later", 0)
		moved.Store(true)
		e.Endpoint(2).DisconnectClients()
		mustCloseOnServer(t, e.Server, m)
	})
}

// A session that is lost because a server has shortened its timeout is closed on the server.
func TestASessionThatWasShortenedIsClosed(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		var granted, closed atomic.Int32
		var ids atomic.Int64
		granted.Store(10_000)
		h := &hostileServer{grant: func(asked int64, timeout int32) (int64, int32) {
			if asked == 0 {
				return ids.Add(1), timeout
			}
			return asked, granted.Load()
		}}
		h.answer = func(_ *hostilePeer, _, op int32, _ []byte) bool {
			if op == int32(zkserver.OpCloseSession) {
				closed.Add(1)
			}
			return false
		}
		s := current(t, connectTo(t, h))
		hold(t, s)
		time.Sleep(20 * time.Second)
		granted.Store(50)
		h.hangUp()
		<-s.Done()
		time.Sleep(25 * time.Second)
		if closed.Load() != 1 {
			t.Errorf("closeSession was sent %d times, want once", closed.Load())
		}
	})
}

// A server that is silent once delays the closing of a lost session by at most half a minute, for any session timeout.
func TestALostSessionIsClosedPastASilentServer(t *testing.T) {
	for _, timeout := range []time.Duration{10 * time.Second, 19 * time.Minute} {
		bounds.Bubble(t, func(t *testing.T) {
			srv := zksynctest.Start(t, zksynctest.WithConfig(zkserver.Config{MaxSessionTimeout: 24 * time.Hour}))
			s := current(t, connect(t, srv, three, session.WithTimeout(timeout)))
			loseLock(t, srv, s)
			srv.Inject(zksynctest.Fault{Op: zkserver.OpConnect, Session: s.ID(), At: zksynctest.BeforeReply, Do: zksynctest.Delay(time.Hour)})
			srv.Heal(s.ID())
			time.Sleep(35 * time.Second)
			mustExist(t, srv, "/lock", false)
		})
	}
}

// Close directly after the loss of a session closes that session on the server, which can be reached again.
func TestCloseRightAfterALoss(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		loseLock(t, srv, s)
		srv.Heal(s.ID())
		mustCloseOnServer(t, srv, m)
	})
}

// Close tries again if the server answers its connection for another session.
func TestCloseAnsweredForAnotherSession(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		create(t, s, "/lock", zk.FlagEphemeral)
		srv.Inject(zksynctest.Fault{Op: zkserver.OpConnect, Do: zksynctest.Disconnect})
		srv.Inject(zksynctest.Fault{Op: zkserver.OpCloseSession, Do: zksynctest.Disconnect})
		srv.SwapSessionID(s.ID())
		mustCloseOnServer(t, srv, m)
	})
}

// If a connection breaks at closeSession, Close presents the credentials on the next connection before it closes the session.
func TestCloseAfterABreakPresentsTheCredentials(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three, session.WithAuth("digest", []byte("u:p")))
		s := current(t, m)
		create(t, s, "/lock", zk.FlagEphemeral)
		srv.Inject(zksynctest.Fault{Op: zkserver.OpCloseSession, Do: zksynctest.Disconnect})
		srv.ResetOps()
		mustCloseOnServer(t, srv, m)
		var last []zkserver.OpCode
		for _, op := range srv.Ops() {
			if op.Code == zkserver.OpConnect {
				last = nil
			}
			last = append(last, op.Code)
		}
		if len(last) != 3 || last[1] != zkserver.OpAuth || last[2] != zkserver.OpCloseSession {
			t.Errorf("the last connection had %v, want a handshake, the credentials and closeSession", last)
		}
	})
}

// A silent connection ends after two minutes at most, and in shorter sessions after two thirds of the timeout, or after a
// quarter while something is held.
func TestSilentConnectionsOfLongSessionsEnd(t *testing.T) {
	for _, test := range []struct {
		timeout  time.Duration
		held     bool
		from, to time.Duration
	}{
		{12 * time.Second, false, 4 * time.Second, 9 * time.Second},
		{time.Hour, false, time.Minute, 4 * time.Minute},
		{12 * time.Second, true, 3 * time.Second, 5 * time.Second},
		{time.Hour, true, time.Minute, 4 * time.Minute},
	} {
		bounds.Bubble(t, func(t *testing.T) {
			srv := zksynctest.Start(t, zksynctest.WithConfig(zkserver.Config{MaxSessionTimeout: 24 * time.Hour}))
			m := connect(t, srv, three, session.WithTimeout(test.timeout))
			s := current(t, m)
			if test.held {
				hold(t, s)
			}
			time.Sleep(test.timeout/5 + 3*time.Second)
			states := m.States(t.Context())
			<-states
			srv.Partition(s.ID())
			began := time.Now()
			if st := <-states; st != session.Suspended {
				t.Fatalf("%v, want Suspended", st)
			}
			if took := time.Since(began); took < test.from || took > test.to {
				t.Errorf("%+v: the connection has ended after %v", test, took)
			}
		})
	}
}

// cleanUpFor starts a function of Do that returns a while after the end of its ctx. The channel is closed when Do has
// returned.
func cleanUpFor(t testing.TB, m *session.Manager, work time.Duration) (returned chan struct{}) {
	running, returned := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(returned)
		_ = m.Do(t.Context(), func(ctx context.Context, _ *session.Session) error {
			close(running)
			<-ctx.Done()
			<-time.After(work)
			return nil
		})
	}()
	<-running
	return returned
}

// Close waits for a function of Do whose session was lost before, or is lost while Close waits, and in both cases for two
// thirds of the session timeout at most.
func TestCloseAwaitsFunctionsOfALostSession(t *testing.T) {
	for _, early := range []bool{true, false} {
		for _, work := range []time.Duration{timeout / 2, timeout} {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := connect(t, srv, three)
				returned := cleanUpFor(t, m, work)
				lost := current(t, m)
				ended := time.Now().Add(work) // the function's ctx ends now, by the loss or by Close
				expire := func() {
					if err := srv.ExpireSession(lost.ID()); err != nil {
						t.Error(err)
					}
				}
				if early {
					expire()
					<-lost.Done()
					current(t, m) // the next session
				} else {
					time.AfterFunc(timeout/10, expire)
				}
				limit := time.Now().Add(timeout * 2 / 3)
				if ended.Before(limit) {
					limit = ended
				}
				m.Close()
				if late := time.Since(limit); late != 0 {
					t.Errorf("lost before Close: %v: Close returned %v late beside a function that needs %v", early, late, work)
				}
				<-returned
			})
		}
	}
}

// Close waits for a function of Do if it is called as soon as a session is lost by the silence of the servers, and for two
// thirds of the session timeout at most, although it meanwhile tries to close the session on a server.
func TestCloseDuringALoss(t *testing.T) {
	for _, work := range []time.Duration{timeout / 2, timeout} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := connect(t, srv, three)
			lost := current(t, m)
			returned := cleanUpFor(t, m, work)
			for range 10_000 { // the loss takes a while
				if _, err := lost.NotifyEnd(func(error) {}); err != nil {
					t.Fatal(err)
				}
			}
			srv.Partition(lost.ID())
			<-lost.Done()
			start := time.Now()
			m.Close()
			if took, want := time.Since(start), min(work, timeout*2/3); took != want {
				t.Errorf("Close took %v beside a function that needs %v, want %v", took, work, want)
			}
			<-returned
		})
	}
}
