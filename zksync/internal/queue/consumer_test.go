package queue

import (
	"testing"
	"testing/synctest"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
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

// A Take takes no room from the claims of a stream, and makes none, while its removal is under way and afterwards.
func TestTakesAreNotRoomForClaims(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a := r.open(InOrder, true)
		a.receive(1)
		want := func(when string) {
			if n := a.v.claims.unsettled(); n != 1 {
				r.Errorf("%d claims %s, want the one there is", n, when)
			}
		}
		until := make(chan struct{})
		r.srv.Inject(zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, At: zksynctest.BeforeReply, Do: zksynctest.Hold(until)})
		took := make(chan error, 1)
		go func() {
			_, _, err := a.Take(r.Context(), true)
			took <- err
		}()
		synctest.Wait()
		want("beside a Take")
		close(until)
		r.must(<-took)
		want("after a Take")
	})
}
