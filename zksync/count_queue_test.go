package zksync_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A single Put takes one request, and the Puts of many goroutines share requests: Puts that come while a request is
// under way go with the next one.
func TestPutsCost(t *testing.T) {
	const trip = 10 * time.Millisecond
	for _, test := range []struct{ goroutines, each, most int }{
		{1, 1000, 1000},
		// One or two requests a round, as they happen to fall into step.
		{100, 10, 20},
		// One request for the first Puts, and then 128 Puts in each request.
		{1000, 1, 9},
	} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			q := newQueue(t, srv)
			put(t, q, "first")
			slow(srv, trip)
			srv.ResetOps()
			var wg sync.WaitGroup
			for range test.goroutines {
				wg.Go(func() { put(t, q, numbered("m", test.each)...) })
			}
			wg.Wait()
			if n := len(requests(srv)); n > test.most {
				t.Errorf("%d messages of %d goroutines took %d requests, want %d at most", test.goroutines*test.each, test.goroutines, n, test.most)
			}
		})
	}
}

// The requests for a delivery do not grow with the number of waiting messages, and an empty queue takes none.
func TestDeliveriesCost(t *testing.T) {
	perThousand := func(t *testing.T, n int) (asked float64) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			offer(t, srv.Connect(t), queuePath, 0, n)
			m := srv.Connect(t)
			q := zksync.NewQueue(m, queuePath)
			defer q.Close()
			id := live(t, m).ID()
			slow(srv, time.Millisecond) // so that how many go together is not up to the scheduler
			before := srv.Traffic(id).Requests
			receive(t, q.Chan(), n)
			synctest.Wait()
			asked = float64(srv.Traffic(id).Requests-before) * 1000 / float64(n)
			time.Sleep(2 * time.Minute) // the server removes empty containers
			srv.ResetOps()
			time.Sleep(time.Hour)
			if ops := requests(srv, id); len(ops) > 0 {
				t.Errorf("an idle hour took %s", names(ops))
			}
		})
		t.Logf("%d waiting: %.1f requests for a thousand deliveries", n, asked)
		return asked
	}
	// Up to 128 messages are claimed and not removed, and come in two halves: each takes one
	// claim, four reads of 16 messages, whose sizes are not known, and one removal. At the
	// beginning the requests have fewer messages. The order in which goroutines run decides
	// how many removals go together, which makes a tenth of a difference.
	few, many := perThousand(t, 1000), perThousand(t, 10_000)
	if many > 135 {
		t.Errorf("%.1f requests for a thousand deliveries", many)
	}
	if many > 1.15*few {
		t.Errorf("%.1f requests for a thousand of many, %.1f for a thousand alone", many, few)
	}
}

// A consumer far from the servers has its first message after seven round trips, and after six if the queue had a consumer
// before.
func TestFirstMessageTakesFewRoundTrips(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const trip = 10 * time.Millisecond
		offer(t, srv.Connect(t), queuePath, 0, 100)
		for _, most := range []time.Duration{7 * trip, 6 * trip} {
			link := srv.NewLink(t)
			q := zksync.NewQueue(link.Connect(t), queuePath)
			link.Delay(trip / 2)
			began := time.Now()
			receive(t, q.Chan(), 1)
			if took := time.Since(began); took > most {
				t.Errorf("the first message came after %v, want %v at most", took, most)
			}
			closeQueue(t, q)
		}
	})
}
