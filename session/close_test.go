package session_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Close writes one line to the log, closed, which has no error, whether or not the server answers. The line disconnected
// is only about connections that end while the session goes on.
func TestCloseIsLoggedAsSuch(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			opt, logs := observed()
			m := connect(t, srv, three, opt)
			s := current(t, m)
			srv.Disconnect(s.ID())
			synctest.Wait()
			current(t, m)
			if frozen {
				srv.Freeze()
			}
			m.Close()
			srv.Thaw()
			ended, closed := logs.FilterMessage("disconnected").All(), logs.FilterMessage("closed").All()
			if len(ended) != 1 || ended[0].ContextMap()["error"] == nil || len(closed) != 1 {
				t.Fatalf("frozen %v: %d lines disconnected and %d lines closed, want one each", frozen, len(ended), len(closed))
			}
			fields := closed[0].ContextMap()
			if fields["error"] != nil || fields["server"] == nil || fields["session"] == nil || closed[0].Level != zap.InfoLevel {
				t.Errorf("frozen %v: the line closed has level %v and the fields %v", frozen, closed[0].Level, fields)
			}
		})
	}
}

// Close closes the session on the server, ends holds with ErrClosed, and may be called again, and every later call
// fails with ErrClosed.
func TestCloseEndsTheSessionOnTheServer(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		create(t, s, "/e", zk.FlagEphemeral)
		within(t, 0, "Close", func() {
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					if err := m.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		})
		<-m.Done()
		mustExist(t, srv, "/e", false)
		if n := len(srv.Sessions()); n != 0 {
			t.Errorf("%d sessions left", n)
		}
		if m.State() != session.Closed {
			t.Errorf("%v, want Closed", m.State())
		}
		_, err := m.Session(t.Context())
		mustBe(t, err, session.ErrClosed)
		err = m.Do(t.Context(), func(context.Context, *session.Session) error { t.Error("called"); return nil })
		mustBe(t, err, session.ErrClosed)
		_, err = s.Busy()
		mustBe(t, err, session.ErrClosed)
		mustBe(t, context.Cause(s.Context()), session.ErrClosed)
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Close closes the session on the server within a second if a server can be reached, although the connection has ended,
// is silent, or ends at closeSession, and although a server refuses closeSession.
func TestCloseEndsTheSessionIfAServerCanBeReached(t *testing.T) {
	closing := func(do zkserver.Action) func(*zksynctest.Server, int64) {
		return func(srv *zksynctest.Server, _ int64) {
			srv.Inject(zkserver.Fault{Op: zkserver.OpCloseSession, Do: do})
		}
	}
	for name, trouble := range map[string]func(srv *zksynctest.Server, id int64){
		"right before Close": func(srv *zksynctest.Server, id int64) { srv.Disconnect(id) },
		// Each address refuses once, so the client is in the pause before its fourth attempt.
		"in the pause before a dial": func(srv *zksynctest.Server, id int64) {
			srv.Inject(zkserver.Fault{Op: zkserver.OpConnect, Times: 3, Do: zkserver.Disconnect})
			srv.Disconnect(id)
			synctest.Wait()
		},
		"at closeSession": closing(zkserver.Disconnect),
		"session moved":   closing(zkserver.Error(-118)),
		"internal error":  closing(zkserver.Error(-1)),
		"no answer":       closing(zkserver.Delay(time.Hour)),
		"three servers hang up": func(srv *zksynctest.Server, _ int64) {
			srv.Inject(zkserver.Fault{Op: zkserver.OpCloseSession, Times: 3, Do: zkserver.Disconnect})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := connect(t, srv, three)
				s := current(t, m)
				create(t, s, "/lock", zk.FlagEphemeral)
				trouble(srv, s.ID())
				within(t, 1100*time.Millisecond, "Close", func() { m.Close() })
				mustExist(t, srv, "/lock", false)
			})
		})
	}
}

// Close makes no other connection behind the answer that the session is closed. To see this test fail, remove the
// cancel from link.shutdown.
func TestCloseMakesNoOtherConnection(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		for range 20 {
			m := connect(t, srv, three)
			current(t, m)
			m.Close()
			if n := m.Stats().Connections; n != 1 {
				t.Fatalf("%d connections, want 1", n)
			}
		}
	})
}

// Close without requests in flight takes at most a second, regardless of the network, and leaves no goroutine.
func TestCloseInTrouble(t *testing.T) {
	for name, begin := range troubles {
		for _, held := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				for _, after := range []time.Duration{0, 10 * time.Millisecond, time.Second, timeout / 2, timeout, 5 * timeout} {
					bubble(t, func(t *testing.T, srv *zksynctest.Server) {
						m := connect(t, srv, three)
						s := current(t, m)
						if held {
							hold(t, s)
						}
						begin(srv, s.ID())
						time.Sleep(after)
						within(t, 1100*time.Millisecond, "Close", func() { m.Close() })
					})
				}
			})
		}
	}
}

// Close ends a Manager that is connecting for the first time, or again.
func TestCloseAtAnyMoment(t *testing.T) {
	for _, after := range []time.Duration{0, time.Microsecond, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			for _, op := range []zkserver.OpCode{zkserver.OpConnect, zkserver.OpSync} {
				for _, at := range []zkserver.Moment{zkserver.BeforeCommit, zkserver.AfterCommit} {
					ctx, cancel := context.WithTimeout(t.Context(), after)
					inj := srv.Inject(zkserver.Fault{Op: op, At: at, Do: zkserver.Delay(10 * time.Millisecond)})
					if m, err := session.Connect(ctx, three, session.WithDialer(srv.Dial)); err == nil {
						m.Close()
					}
					cancel()
					inj.Remove()

					m := connect(t, srv, three)
					s := current(t, m)
					inj = srv.Inject(zkserver.Fault{Op: op, At: at, Do: zkserver.Delay(10 * time.Millisecond)})
					if op == zkserver.OpConnect {
						srv.ExpireSession(s.ID())
					} else {
						srv.Disconnect(s.ID())
					}
					time.Sleep(after)
					within(t, 1100*time.Millisecond, "Close", func() { m.Close() })
					inj.Remove()
				}
			}
			// If the ctx of a Connect has ended, a session that the server has opened meanwhile is closed in the
			// background within a second.
			time.Sleep(1100 * time.Millisecond)
		})
	}
}

// Close waits for requests and functions in flight while the session is proven alive, and refuses new ones.
func TestCloseAwaitsWhatIsUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Do: zkserver.Delay(2 * time.Second)})
		results := make(chan error)
		go func() { _, err := s.Create(t.Context(), "/slow", nil, 0); results <- err }()
		go func() {
			results <- m.Do(t.Context(), func(ctx context.Context, s *session.Session) error {
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), session.ErrClosed) {
					t.Errorf("the cause is %v, want ErrClosed", context.Cause(ctx))
				}
				time.Sleep(3 * time.Second)
				return nil
			})
		}()
		synctest.Wait()
		start := time.Now()
		closed := make(chan struct{})
		go func() { m.Close(); close(closed) }()
		for range 2 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		<-closed
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("Close took %v, want the three seconds of the function", took)
		}
		mustExist(t, srv, "/slow", true)
	})
}

// Busy delays Close until the Deadline at most if something is held, and otherwise for two thirds of the session
// timeout after the last answer.
func TestCloseAwaitsUntilTheDeadline(t *testing.T) {
	for _, held := range []bool{true, false} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := connect(t, srv, three)
			s := current(t, m)
			done, err := s.Busy()
			if err != nil {
				t.Fatal(err)
			}
			defer done()
			limit := time.Now().Add(timeout * 2 / 3)
			if held {
				hold(t, s)
				limit = s.Deadline()
			}
			m.Close()
			if late := time.Since(limit); late != 0 {
				t.Errorf("held %v: Close returned %v late", held, late)
			}
			done()
		})
	}
}

// churn opens a Manager, uses it for a moment, and closes it.
func churn(ctx context.Context, dial session.DialFunc, address string, life time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, life)
	defer cancel()
	m, err := session.Connect(ctx, address, session.WithDialer(dial))
	if err != nil {
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer m.Close()
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				m.Do(ctx, func(ctx context.Context, s *session.Session) error {
					defer s.Lease().End()
					path, err := s.CreateProtected(ctx, "/x-", nil, zk.FlagEphemeralSequential)
					if err != nil {
						return err
					}
					if _, _, _, err := s.GetW(ctx, path); err != nil {
						return err
					}
					s.Discard(path)
					return nil
				})
			}
		})
	}
	<-ctx.Done()
}

// When Close of a Manager has returned, none of its goroutines runs. 1,000 Managers are each closed at a random
// moment under load, while connections break and sessions expire. A goroutine that stays would end the bubble with a
// panic, and the test with goleak.
func TestManagersClosedAtRandomMomentsLeaveNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		srv.Inject(zkserver.Fault{Times: -1, Do: zkserver.Delay(time.Millisecond)})
		slots := make(chan struct{}, 50)
		var wg sync.WaitGroup
		for range bounds.Size(250, 1000) {
			slots <- struct{}{}
			wg.Go(func() {
				churn(t.Context(), srv.Dial, three, rand.N(60*time.Millisecond))
				<-slots
			})
			if all := srv.Sessions(); len(all) > 0 {
				if id := all[rand.IntN(len(all))].ID; rand.IntN(2) == 0 {
					srv.Disconnect(id)
				} else {
					srv.ExpireSession(id)
				}
			}
		}
		wg.Wait()
		// A Connect that ends with its ctx returns before it has closed its session, which takes a second if the
		// connection has just ended.
		time.Sleep(time.Second)
	})
}

// Managers over TCP leave no goroutine and no session behind.
func TestManagersOverTCPLeaveNothing(t *testing.T) {
	srv := zksynctest.Start(t)
	addr := srv.Addr()
	var d net.Dialer
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 10 {
				churn(t.Context(), d.DialContext, addr, rand.N(20*time.Millisecond))
			}
		})
	}
	wg.Wait()
}

// Close sends the servers no request for each of a thousand Ephemerals: the end of the session removes their watches.
// Breaks if trim does not look at the ctx of the Manager.
func TestCloseRemovesNoWatches(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		for i := range 1000 {
			if _, err := m.Ephemeral(t.Context(), fmt.Sprint("/e/", i), nil); err != nil {
				t.Fatal(err)
			}
		}
		// The work gives the Ephemerals time to end before the connection does.
		go m.Do(t.Context(), func(ctx context.Context, _ *session.Session) error {
			<-ctx.Done()
			time.Sleep(time.Millisecond)
			return nil
		})
		synctest.Wait()
		before := len(srv.Ops())
		m.Close()
		if ops := srv.Ops()[before:]; len(ops) > 5 {
			t.Errorf("%d requests, the first of them %v, want the end of the session alone", len(ops), ops[0])
		}
	})
}
