package zksync

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

func liveSession(t *testing.T, m *session.Manager) *session.Session {
	t.Helper()
	s, err := m.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A caller that asks for the view of an old session does not replace the view of the present session.
func TestOutlookOfAFormerSession(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		q := NewQueue(m, "/q")
		defer q.Close()
		former := liveSession(t, m)
		srv.ExpireSession(former.ID())
		<-former.Done()
		now := q.consumer.outlook(liveSession(t, m))
		if q.consumer.outlook(former) == now {
			t.Error("two sessions share an outlook")
		}
		if q.consumer.outlook(now.s) != now {
			t.Error("the outlook of the session was replaced")
		}
	})
}

// A message that was passed over because of a claim that has gone is found again. It is not forgotten.
func TestPassingOverWhatIsFreeAgain(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		q := NewQueue(m, "/q")
		defer q.Close()
		if err := q.Put(t.Context(), []byte("a")); err != nil {
			t.Fatal(err)
		}
		o := q.consumer.outlook(liveSession(t, m))
		if err := o.readyToTake(t.Context()); err != nil {
			t.Fatal(err)
		}
		refs, err := o.next(t.Context(), one, true, func() {})
		if err != nil || len(refs) != 1 {
			t.Fatal(refs, err)
		}
		if err := o.listClaims(t.Context()); err != nil {
			t.Fatal(err)
		}
		again := make(chan []ref, 1)
		go func() {
			refs, _ := o.next(t.Context(), one, true, func() {})
			again <- refs
		}()
		synctest.Wait()
		o.pass(refs[0])
		select {
		case got := <-again:
			if len(got) != 1 || got[0].item != refs[0].item {
				t.Errorf("%v came, want %v", got, refs)
			}
		case <-time.After(time.Hour):
			t.Error("a message that nobody has claimed was not found for an hour")
		}
	})
}

// A Take counts as a claim that is settled from its first moment, so that a channel never
// takes it for room for one more message (claim.go: the one critical section of holdTake).
func TestTakesAreNotRoomForClaims(t *testing.T) {
	o := &outlook{load: &claimLoad{}, claimBytes: 1, lease: new(session.Lease), held: 1}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range 100_000 {
			o.holdTake()
			o.releaseTake()
		}
	}()
	for {
		select {
		case <-over:
			return
		default:
			if n := o.unsettled(); n < 1 {
				t.Fatalf("%d claims, want at least the one there is", n)
			}
		}
	}
}
