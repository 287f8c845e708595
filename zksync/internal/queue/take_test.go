package queue

import (
	"context"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A Take does not rely on a read over an earlier connection: the event of a directory that was deleted during the
// disconnection may not have come yet (take.isOld: Connection).
func TestReadOverAnEarlierConnectionIsOld(t *testing.T) {
	withRig(t, 1, func(r rig) {
		c := r.open(InOrder, false)
		take := take{c: c.Consumer, v: c.v}
		ref, read, conn := c.pick(1).refs[0], time.Now(), c.v.s.Connection()
		isOld := func() bool { return take.isOld(ref, read, conn) }
		if isOld() {
			t.Error("a read that has just begun is old")
		}
		r.must(r.srv.Disconnect(c.v.s.ID()))
		time.Sleep(time.Second)
		if c.v.s.Connection() == 0 {
			t.Fatal("there is no other connection")
		}
		if !isOld() {
			t.Error("a read over the earlier connection is not old")
		}
	})
}

// A Take gets its share beside a Chan as far from the servers, also of a queue that is empty between two messages.
func TestTakeBesideAChan(t *testing.T) {
	inBubble(t, func(h harness) {
		const n = 200
		h.put(0, 0)
		var consumers []*Consumer
		for range 2 {
			link := h.srv.NewLink(h)
			m := link.Connect(h)
			link.Delay(time.Millisecond)
			consumers = append(consumers, h.consumer(m, 8, InOrder))
		}
		ctx, cancel := context.WithCancel(h.Context())
		defer cancel()
		got := make(chan int, n)
		go consumers[0].Deliver(true, func(context.Context, *Delivery) bool { got <- 0; return true })
		go func() {
			for ctx.Err() == nil {
				if _, ok, _ := consumers[1].Take(ctx, true); ok {
					got <- 1
				}
			}
		}()
		time.Sleep(10 * time.Second)
		counts := make([]int, 2)
		for i := range n {
			h.put(i, i+1)
			time.Sleep(time.Second)
		}
		for range n {
			counts[<-got]++
		}
		if counts[1] < n/10 {
			t.Errorf("Chan received %d messages, and Take %d", counts[0], counts[1])
		}
		cancel()
		for _, c := range consumers {
			h.close(c)
		}
	})
}

// A Take that is abandoned while Close waits for it returns no message that Chan has delivered before.
func TestTakeAbandonedDuringClose(t *testing.T) {
	inBubble(t, func(h harness) {
		h.put(0, 1)
		c := h.consumer(h.srv.Connect(h), 8, InOrder)
		removal := zksynctest.Fault{Op: zkserver.OpMulti, Path: testQueue + "/" + ItemPrefix + "*", Do: zksynctest.Error(zkserver.ErrNoAuth)}
		h.srv.Inject(removal)
		received := 0
		if err := c.Deliver(true, func(context.Context, *Delivery) bool { received++; return true }); err == nil || received != 1 {
			h.Fatalf("received %d, and Deliver returned %v", received, err)
		}
		time.Sleep(time.Second)
		answer := make(chan struct{})
		removal.At, removal.Do = zksynctest.BeforeReply, zksynctest.Hold(answer)
		h.srv.Inject(removal)
		ctx, cancel := context.WithCancel(h.Context())
		taken := make(chan bool)
		go func() {
			_, ok, _ := c.Take(ctx, true)
			taken <- ok
		}()
		time.Sleep(time.Second)
		go c.Close(h.Context())
		time.Sleep(time.Second)
		cancel()
		time.Sleep(time.Second)
		close(answer)
		if <-taken {
			h.Error("Take returned the message that Chan has delivered")
		}
		<-c.closed
	})
}
