package zksynctest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// endpointOf is where the session of m is connected.
func endpointOf(t testing.TB, e *zksynctest.EmbeddedEnsemble, m *session.Manager) int {
	t.Helper()
	s, err := m.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(t.Context(), "/"); err != nil {
		t.Fatal(err)
	}
	ops := e.Ops()
	for i := len(ops) - 1; i >= 0; i-- {
		if ops[i].Session == s.ID() {
			return ops[i].Endpoint
		}
	}
	t.Fatalf("session %#x has asked nothing", s.ID())
	return 0
}

// A held lock survives the end of its endpoint: the session moves to another endpoint when its
// endpoint is killed, restarted, reset or cut off.
func TestAHeldLockOutlivesItsEndpoint(t *testing.T) {
	for name, fail := range map[string]func(*zksynctest.EmbeddedEnsemble, int){
		"killed":    (*zksynctest.EmbeddedEnsemble).Kill,
		"restarted": (*zksynctest.EmbeddedEnsemble).Restart,
		"reset":     func(e *zksynctest.EmbeddedEnsemble, i int) { e.Reset(i, zksynctest.Client) },
		"cut":       func(e *zksynctest.EmbeddedEnsemble, i int) { e.Cut(zksynctest.Client, i) },
		"paused":    (*zksynctest.EmbeddedEnsemble).Pause,
	} {
		t.Run(name, func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				// The other endpoints give up a paused leader after five ticks. The lease of 2/3 of
				// the timeout must last longer, even if a sixth of the timeout has passed.
				e := zksynctest.StartEnsemble(t, 5, zksynctest.WithTick(time.Second))
				m := e.Connect(t, session.WithTimeout(20*time.Second))
				mu := zksync.NewMutex(m, "/lock")
				held, err := mu.LockContext(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				token, _ := zksync.Token(held)
				for range 2 { // two of the five endpoints may fail
					old := endpointOf(t, e, m)
					fail(e, old)
					time.Sleep(30 * time.Second)
					if now := endpointOf(t, e, m); now == old && name != "restarted" && name != "reset" {
						t.Fatalf("still connected to endpoint %d", old)
					}
				}
				if held.Err() != nil {
					t.Fatalf("lost: %v", held.Err())
				}
				if again, _ := zksync.Token(held); again != token {
					t.Fatalf("token %#x, was %#x", again, token)
				}
				if err := mu.Unlock(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// A holder on an endpoint that is cut off from its leader learns of the loss before the next
// contender gets the lock.
func TestAHolderOnACutOffEndpointKnowsBeforeTheNext(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		e := zksynctest.StartEnsemble(t, 3, zksynctest.WithTick(time.Second))
		next := zksync.NewMutex(e.ConnectTo(t, 2), "/lock")
		m := e.ConnectTo(t, 1, session.WithTimeout(4900*time.Millisecond))
		mu := zksync.NewMutex(m, "/lock")
		held, err := mu.LockContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// The worst moment: the follower reports its touches each 500 ms, and the session ends at
		// the next tick after 4.9 s from then.
		time.Sleep(10*time.Second + 490*time.Millisecond)
		lost := make(chan time.Time, 1)
		go func() {
			<-held.Done()
			lost <- time.Now()
		}()
		e.Endpoint(1).CutFromLeader()
		cut := time.Now()
		if err := next.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		given := time.Now()
		select {
		case at := <-lost:
			t.Logf("lost %v after the cut, given to the next after %v", at.Sub(cut), given.Sub(cut))
			if at.After(s.Deadline()) {
				t.Fatal("lost after the Deadline")
			}
		default:
			t.Fatal("the next has the lock, and the holder does not know")
		}
		if after := given.Sub(cut); after < 4*time.Second || after > 5*time.Second {
			t.Fatalf("given away %v after the cut: the session of 4.9 s should have expired", after)
		}
		if err := mu.Unlock(); !errors.Is(err, zksync.ErrLost) {
			t.Fatalf("%v", err)
		}
		if err := next.Unlock(); err != nil {
			t.Fatal(err)
		}
	})
}

// Sessions survive an outage of the whole ensemble of any length.
func TestSessionsOutliveALongOutage(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		e := zksynctest.StartEnsemble(t, 3)
		m := e.Connect(t, session.WithTimeout(30*time.Second))
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e.Kill(1)
		e.Kill(2)
		if n := e.Leader(); n != 0 {
			t.Fatalf("%d leads without a quorum", n)
		}
		time.Sleep(20 * time.Second) // shorter than the client's own limit
		if len(e.Sessions()) != 1 {
			t.Fatal("the session expired without a quorum")
		}
		e.Start(1)
		if err := s.Sync(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		if n := e.WaitLeader(); n != 3 {
			t.Fatalf("%d leads", n)
		}
	})
}

// A read after Sync is no older than the leader's state at the time of the call.
func TestStaleReadsUntilSync(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		e := zksynctest.StartEnsemble(t, 3)
		s, err := e.ConnectTo(t, 1).Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e.Endpoint(1).Lag()
		if err := e.Create("/new", nil); err != nil {
			t.Fatal(err)
		}
		if there, _, err := s.Exists(t.Context(), "/new"); there || err != nil {
			t.Fatalf("there %v, %v: the read is not stale", there, err)
		}
		if err := s.Sync(t.Context(), "/new"); err != nil {
			t.Fatal(err)
		}
		if there, _, err := s.Exists(t.Context(), "/new"); !there || err != nil {
			t.Fatalf("there %v, %v after a sync", there, err)
		}
	})
}
