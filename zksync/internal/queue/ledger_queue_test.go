package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// deliverMany puts n messages, and receives some of them with a time of work on each. A
// transaction takes five milliseconds.
func deliverMany(h harness, prefetch, n, received int, work time.Duration) (*Consumer, <-chan *Delivery) {
	h.Helper()
	h.put(0, n)
	h.srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Times: -1, Do: zksynctest.Delay(5 * time.Millisecond)})
	h.srv.ResetOps()
	c := h.consumer(h.srv.Connect(h), prefetch, InOrder)
	ch := h.acknowledged(c)
	for i := range received {
		h.next(ch, fmt.Sprint(i), 1)
		time.Sleep(work)
	}
	return c, ch
}

// The removals of a fast receiver are in the transactions of claims.
func TestRemovalsGoWithTheNextClaim(t *testing.T) {
	inBubble(t, func(h harness) {
		const n = 4000
		c, _ := deliverMany(h, 128, n, n, 10*time.Microsecond)
		multis := 0
		for _, op := range h.srv.Ops() {
			if op.Code == zkserver.OpMulti {
				multis++
			}
		}
		// Each transaction moves half of the window, which is small at first.
		if most := n/64 + 12; multis > most {
			h.Errorf("%d transactions for %d messages, want at most %d", multis, n, most)
		}
		h.close(c)
		h.wantLeft(0, 0)
	})
}

// A removal for which no claim comes waits no longer than two claims take.
func TestRemovalDoesNotWaitForLong(t *testing.T) {
	inBubble(t, func(h harness) {
		c, ch := deliverMany(h, 128, 1000, 500, 0)
		time.Sleep(time.Second)
		h.next(ch, "500", 1)
		time.Sleep(20 * time.Millisecond)
		h.wantLeft(499, 1)
		h.close(c)
	})
}

// Many messages ahead of the receiver do not make it slower, though removals that wait for a claim count
// as unconfirmed.
func TestRemovalsOfALargeWindow(t *testing.T) {
	took := make(map[int]time.Duration)
	for _, prefetch := range []int{128, 2000} {
		inBubble(t, func(h harness) {
			const n = 4000
			began := time.Now()
			c, _ := deliverMany(h, prefetch, n, n, 10*time.Microsecond)
			took[prefetch] = time.Since(began)
			h.close(c)
			h.wantLeft(0, 0)
		})
	}
	// The order in which goroutines run changes both times by some percent.
	if took[2000] > took[128]*6/5 {
		t.Errorf("%v with 2,000 messages ahead, %v with 128", took[2000], took[128])
	}
}
