package zksync_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Between Resign and the next one's Campaign lies one request, a delete that is sent
// at once, however many stand for election and however long the leader led. The
// requests by which the candidate after the next prepares delay no other candidate.
func TestElectionHandOverIsOneRequest(t *testing.T) {
	const trip = 10 * time.Millisecond
	for _, candidates := range []int{2, 3, 10} {
		for _, led := range []time.Duration{5 * trip, time.Minute} {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				type leading struct {
					ctx context.Context
					at  time.Time
				}
				var all []*zksync.Election
				var leads []chan leading
				for range candidates {
					e := zksync.NewElection(srv.Connect(t), "/master")
					lead := make(chan leading, 1)
					go func() {
						ctx, err := e.Campaign(t.Context())
						if err != nil {
							t.Error(err)
						}
						lead <- leading{ctx, time.Now()}
					}()
					synctest.Wait()
					all, leads = append(all, e), append(leads, lead)
				}
				slow(srv, trip)
				for i, e := range all {
					<-leads[i]
					time.Sleep(led) // and the next but one looks
					srv.ResetOps()
					began := time.Now()
					must(t, e.Resign())
					if took := time.Since(began); took != trip {
						t.Errorf("Resign took %v, want a round trip, %v", took, trip)
					}
					time.Sleep(10 * trip)
					ops := requests(srv)
					want := "delete"
					if candidates-i > 2 {
						want = "delete getChildren2"
					}
					if got := names(ops); got != want {
						t.Fatalf("hand-over %d of %d, led for %v: %s, want %s", i, candidates, led, got, want)
					}
					if ops[0].Code != zkserver.OpDelete || !ops[0].Time.Equal(began) {
						t.Errorf("the delete was sent %v after Resign", ops[0].Time.Sub(began))
					}
					if i+1 < candidates {
						next := <-leads[i+1]
						if late := next.at.Sub(ops[0].Time); late != 0 {
							t.Errorf("hand-over %d of %d: Campaign returned %v after the delete", i, candidates, late)
						}
						leads[i+1] <- next
					}
				}
			})
		}
	}
}
