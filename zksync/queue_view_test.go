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
func TestViewOfAFormerSession(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		q := NewQueue(m, "/q")
		defer q.Close()
		former := liveSession(t, m)
		srv.ExpireSession(former.ID())
		<-former.Done()
		now := q.consumer.viewOf(liveSession(t, m))
		if q.consumer.viewOf(former) == now {
			t.Error("two sessions share a view")
		}
		if q.consumer.viewOf(now.s) != now {
			t.Error("the view of the session was replaced")
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
		v := q.consumer.viewOf(liveSession(t, m))
		if err := v.ensureClaimsDir(t.Context()); err != nil {
			t.Fatal(err)
		}
		refs, err := v.next(t.Context(), one, true, func() {})
		if err != nil || len(refs) != 1 {
			t.Fatal(refs, err)
		}
		if err := v.listClaims(t.Context()); err != nil {
			t.Fatal(err)
		}
		again := make(chan []messageRef, 1)
		go func() {
			refs, _ := v.next(t.Context(), one, true, func() {})
			again <- refs
		}()
		synctest.Wait()
		v.markClaimed(refs[0])
		select {
		case got := <-again:
			if len(got) != 1 || got[0].queueItem != refs[0].queueItem {
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
	v := &queueView{load: &claimLoad{}, claimBytes: 1, lease: new(session.Lease), held: 1}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range 100_000 {
			v.holdTake()
			v.releaseTake()
		}
	}()
	for {
		select {
		case <-over:
			return
		default:
			if n := v.unsettledCount(); n < 1 {
				t.Fatalf("%d claims, want at least the one there is", n)
			}
		}
	}
}
