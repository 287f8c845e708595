package session_test

import (
	"sync"
	"testing"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// The first request of a session that follows another is answered only by a server that reaches a quorum, also if the
// session was opened without a transaction: callers may have seen a later state in the session before. See
// TestNoOlderStateInALocalSessionAtADeposedLeader in package watch.
func TestFirstRequestOfTheNextSession(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		var mu sync.Mutex
		var first []string
		m := connect(t, srv, three, session.WithObserver(session.Observer{RequestDone: func(r session.RequestDone) {
			mu.Lock()
			defer mu.Unlock()
			if r.Own {
				first = append(first, r.Op)
			}
		}}))
		if err := srv.ExpireSession(current(t, m).ID()); err != nil {
			t.Fatal(err)
		}
		<-current(t, m).Done()
		mu.Lock()
		first = nil
		mu.Unlock()
		current(t, m)
		mu.Lock()
		defer mu.Unlock()
		if len(first) == 0 || first[0] != "multi" {
			t.Errorf("the first requests of the next session are %q, want a transaction", first)
		}
	})
}
