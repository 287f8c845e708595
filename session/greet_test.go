package session_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// The first request of a session that follows another is answered only by a server that reaches a quorum, also if the
// session was opened without a transaction: callers may have seen a later state in the session before. If a server refuses
// the request, the next connection begins with another. See TestNoOlderStateInALocalSessionAtADeposedLeader in package
// watch.
func TestFirstRequestOfTheNextSession(t *testing.T) {
	for _, refusal := range []zkserver.Code{0, -1, -4, -7, -118, -122, -127} {
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
			want := []string{"multi"}
			if refusal != 0 {
				srv.Inject(zkserver.Fault{Op: zkserver.OpMulti, At: zkserver.BeforeCommit, Do: zkserver.Error(refusal)})
				want = append(want, "multi")
			}
			before := current(t, m)
			synctest.Wait()
			mu.Lock()
			first = nil
			mu.Unlock()
			if err := srv.ExpireSession(before.ID()); err != nil {
				t.Fatal(err)
			}
			<-before.Done()
			current(t, m)
			mu.Lock()
			defer mu.Unlock()
			if fmt.Sprint(first) != fmt.Sprint(want) {
				t.Errorf("refusal %d: the first requests of the next session are %q, want %q", refusal, first, want)
			}
		})
	}
}
