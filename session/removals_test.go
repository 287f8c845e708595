package session_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// The watches of waits that have ended are removed when a server has refused that for a while, although no other wait
// ends (hub.trim). A server that throttles is asked again soon, and an idle session asks nothing.
func TestRemovalOfWatchesGoesOnAfterRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		code   zkserver.Code
		within time.Duration
	}{
		"throttled":      {-127, 30 * time.Second},
		"internal error": {-1, 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				s := current(t, connect(t, srv, three))
				refused := srv.Inject(zkserver.Fault{Op: zkserver.OpRemoveWatches, Times: -1, Do: zkserver.Error(c.code)})
				const n = 3000
				watches := make([]*session.Watch, n)
				for i := range watches {
					var err error
					if _, _, watches[i], err = s.WatchExists(t.Context(), fmt.Sprint("/n", i)); err != nil {
						t.Fatal(err)
					}
				}
				for _, w := range watches {
					w.Stop()
				}
				time.Sleep(10 * time.Second)
				// The pauses grow from 20 ms, and a round has 64 requests at most.
				if n := count(srv.Ops(), zkserver.OpRemoveWatches); n > 12*64 {
					t.Errorf("%d requests to remove watches were refused within 10 s", n)
				}
				refused.Remove()
				time.Sleep(c.within)
				if got := srv.WatchesOf(s.ID()); got > 64 {
					t.Errorf("%d watches on the server %v after the refusals, want at most 64", got, c.within)
				}
				before := count(srv.Ops(), zkserver.OpRemoveWatches)
				time.Sleep(24 * time.Hour)
				if n := count(srv.Ops(), zkserver.OpRemoveWatches); n != before {
					t.Errorf("the idle session has sent %d requests to remove watches", n-before)
				}
			})
		})
	}
}
