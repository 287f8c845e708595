package queue

import (
	"testing"
	"time"
)

// After the order znode was deleted, a message in the ledger of a living consumer stays claimed, even if that consumer
// gives back another one before the recovery.
func TestOrderZnodeDeletedBeforeANack(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a, b := r.open(InOrder, true), r.open(InOrder, true)
		a.forgetOrder()
		both := a.receive(2)
		r.must(r.srv.Delete(a.state().path))
		r.must(both[0].Nack(r.Context()))
		b.forgetOrder()
		for _, d := range b.receive(2) {
			if d.ID == both[1].ID {
				r.Errorf("%s was delivered to two consumers", d.ID)
			}
		}
	})
}

// After the order znode was deleted, the messages of a consumer that has died are delivered to an idle consumer.
func TestOrderZnodeDeletedBeforeADeath(t *testing.T) {
	withRig(t, 1, func(r rig) {
		dead, b := r.open(InOrder, true), r.open(InOrder, true)
		dead.forgetOrder()
		dead.receive(1)
		got := receiveAll(b, false, nil)
		time.Sleep(time.Second)
		r.must(r.srv.Delete(dead.state().path))
		dead.die()
		time.Sleep(time.Minute)
		if len(got) != 1 {
			r.Errorf("%d messages were received, want 1", len(got))
		}
	})
}
