package queue

import (
	"testing"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A caller that asks for the view of an old session does not replace the view of the present session.
func TestViewOfAFormerSession(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		c := NewConsumer(Config{Manager: m, Path: "/q", Kind: InOrder, Prefetch: 1})
		defer c.Close(t.Context())
		live := func() *session.Session {
			s, err := m.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		former := live()
		srv.ExpireSession(former.ID())
		<-former.Done()
		now := c.viewOf(live())
		if c.viewOf(former) == now {
			t.Error("two sessions share a view")
		}
		if c.viewOf(now.s) != now {
			t.Error("the view of the session was replaced")
		}
	})
}

// A Take counts as a claim that is settled from its first moment, so that a stream never
// takes it for room for one more message (consumer.go: the one critical section of hold).
func TestTakesAreNotRoomForClaims(t *testing.T) {
	k := &claimCount{lease: new(session.Lease), held: 1}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range 100_000 {
			k.hold(1, "", nil)
			k.release(1, true)
		}
	}()
	for {
		select {
		case <-over:
			return
		default:
			if n := k.unsettled(); n < 1 {
				t.Fatalf("%d claims, want at least the one there is", n)
			}
		}
	}
}
