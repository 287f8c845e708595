package queue

import (
	"context"
	"testing"
	"time"
)

// receiveAll starts a stream, and returns the received messages.
func receiveAll(c *tester, ack bool, refuse func(d *Delivery) bool) chan *Delivery {
	got := make(chan *Delivery, 100)
	go func() {
		err := c.Deliver(ack, func(ctx context.Context, d *Delivery) bool {
			if refuse != nil && refuse(d) {
				<-ctx.Done()
				return false
			}
			got <- d
			return true
		})
		if err != ErrClosed {
			c.Error("Deliver:", err)
		}
	}()
	return got
}

// A message of Chan that was not received is not removed.
func TestNotRemovedBeforeTheReceipt(t *testing.T) {
	withRig(t, 1, func(r rig) {
		a := r.open(InOrder, false)
		receiveAll(a, true, func(*Delivery) bool { return true })
		time.Sleep(time.Second)
		a.close()
		if !r.exists("/q/" + itemName(0)) {
			r.Error("the message was removed")
		}
	})
}

// A received message of Chan whose removal has failed is removed without another delivery.
func TestBeingRemovedIsNotDeliveredAgain(t *testing.T) {
	withRig(t, 1, func(r rig) {
		a := r.open(InOrder, true)
		d := a.receive(1)[0]
		a.removing.add(d.ref.message, d.czxid)
		_ = giveBack(0, d)
		got := receiveAll(a, true, nil)
		time.Sleep(time.Second)
		if len(got) > 0 {
			r.Error("the message was delivered again")
		}
		if r.exists("/q/" + itemName(0)) {
			r.Error("the message was not removed")
		}
	})
}

// A message that cannot be removed, because it has a child, does not end Chan, and is not delivered again.
func TestChanGoesOnBesideAChild(t *testing.T) {
	withRig(t, 2, func(r rig) {
		r.must(r.srv.Create("/q/"+itemName(0)+"/child", nil))
		a := r.open(InOrder, false)
		got := receiveAll(a, true, nil)
		time.Sleep(time.Minute)
		r.put(2)
		time.Sleep(time.Minute)
		if len(got) != 3 {
			r.Errorf("%d messages were received, want 3", len(got))
		}
	})
}

// When the counter of a directory is spent, the next message has the name of the message before, and is delivered too.
func TestLastNumberIsUsedAgain(t *testing.T) {
	withRig(t, 0, func(r rig) {
		const last = "/q/qn-2147483647"
		r.must(r.srv.Create(last, nil))
		got := receiveAll(r.open(InOrder, false), true, nil)
		for n := 1; n <= 3; n++ {
			time.Sleep(time.Minute)
			if len(got) != n || r.exists(last) {
				r.Fatalf("%d messages were received, want %d", len(got), n)
			}
			r.must(r.srv.Create(last, nil))
		}
	})
}
