package zksync_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A consumer that is far from the servers reads the messages of a claim in the same round trip: while many messages wait, a
// fast receiver gets at least three quarters of its window in each round trip.
func TestDeliveryFarFromTheServers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const first, last, trip = 1000, 3000, 10 * time.Millisecond
		for _, dir := range []string{"/queues", queuePath} {
			if err := srv.Create(dir, nil); err != nil {
				t.Fatal(err)
			}
		}
		for i := range last {
			if err := srv.Create(fmt.Sprintf("%s/qn-%010d", queuePath, i), fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
		link := srv.NewLink(t)
		q := zksync.NewQueue(link.Connect(t), queuePath)
		defer q.Close()
		link.Delay(trip / 2)
		var began time.Time
		for i := range last {
			if data := string(<-q.Chan()); data != fmt.Sprint(i) {
				t.Fatalf("received %q, want %d", data, i)
			}
			if i == first {
				began = time.Now()
			}
		}
		const claim = 96 // three quarters of the window
		if took, want := time.Since(began), (last-first)*trip/claim; took > want {
			t.Errorf("%d messages took %v, want a round trip for each %d of them: %v", last-first, took, claim, want)
		}
	})
}
