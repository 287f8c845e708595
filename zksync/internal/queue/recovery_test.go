package queue

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Messages in the ledger of a living consumer stay claimed when the messages of a dead one are recovered.
func TestRecoveryKeepsTheClaimsOfTheLiving(t *testing.T) {
	withRig(t, 3, func(r rig) {
		dead, a, b := r.open(InOrder, true), r.open(InOrder, true), r.open(InOrder, true)
		dead.receive(1)
		a.forgetOrder()
		a.receive(1)
		dead.die()
		b.forgetOrder()
		for _, want := range []string{"0", "2"} {
			if d := b.receive(1)[0]; string(d.Data) != want {
				r.Errorf("message %s was delivered, want %s", d.Data, want)
			}
		}
	})
}

// A message that is claimed while a recovery reads the ledgers stays claimed.
func TestClaimDuringARecovery(t *testing.T) {
	withRig(t, 2, func(r rig) {
		dead, a, b := r.open(InOrder, true), r.open(InOrder, true), r.open(InOrder, true)
		dead.receive(1)
		a.forgetOrder()
		b.forgetOrder()
		dead.die()
		st := b.state()
		a.v.order.set(&orderState{path: st.path, czxid: st.czxid, version: st.version, table: st.table, ledgerCount: ledgerCount{consumers: 2}}) // does not know of the death
		read := make(chan struct{})
		r.srv.Inject(zksynctest.Fault{Session: b.v.s.ID(), Op: zkserver.OpMultiRead, At: zksynctest.BeforeReply, Do: zksynctest.Hold(read)})
		go func() {
			synctest.Wait()
			claimed := a.receive(1)[0]
			if string(claimed.Data) != "1" {
				r.Errorf("message %s was claimed, want 1", claimed.Data)
			}
			close(read)
		}()
		r.must(recoverClaims(r.Context(), b.v, st))
		for _, p := range b.state().table.partitions {
			if e := p.entries[itemName(1)]; e.state == returned {
				r.Error("the message that was claimed meanwhile is free")
			}
		}
	})
}

// A session deletes the ledger of the session before, so that its messages are free at once.
func TestLedgerOfTheSessionBeforeIsDeleted(t *testing.T) {
	withRig(t, 1, func(r rig) {
		a, b := r.open(InOrder, true), r.open(InOrder, false)
		a.receive(1)
		former := a.ledger.path
		v := newView(&a.cfg, a.lifetime, &a.skips, b.v.s, func() {})
		defer v.stop()
		_, err := a.openClaims(r.Context(), v)
		r.must(err)
		if r.exists(former) {
			r.Error("the former ledger is left")
		}
	})
}

// A consumer that waits for messages learns that another consumer has died, and receives its messages.
func TestIdleConsumerLearnsOfADeath(t *testing.T) {
	withRig(t, 1, func(r rig) {
		dead, a := r.open(InOrder, true), r.open(InOrder, true)
		dead.forgetOrder()
		dead.receive(1)
		got := receiveAll(a, false, nil)
		time.Sleep(time.Second)
		dead.die()
		time.Sleep(time.Minute)
		if len(got) != 1 {
			r.Errorf("%d messages were received, want 1", len(got))
		}
	})
}

// A message that another consumer returns while this one still holds it waits here, too, once it is given up.
func TestReturnedWhilePicked(t *testing.T) {
	withRig(t, 1, func(r rig) {
		a, b := r.open(InOrder, true), r.open(InOrder, true)
		a.forgetOrder()
		d := a.receive(1)[0]
		r.must(r.srv.Delete(a.ledger.path))
		b.forgetOrder()
		b.pick(1) // recovers the claim
		a.forgetOrder()
		if sel := a.pick(1); len(sel.refs) > 0 {
			r.Error("a message that was not given up was picked")
		}
		d.endClaim((*partitionList).relist)
		if sel := a.pick(1); len(sel.refs) != 1 {
			r.Error("the message that was given up was not picked")
		}
	})
}

// A consumer that learns of a death while the answer to its Nack is missing receives the messages of the dead consumer.
func TestDeathDuringANack(t *testing.T) {
	withRig(t, 2, func(r rig) {
		dead, a := r.open(InOrder, true), r.open(InOrder, true)
		dead.receive(1)
		a.forgetOrder()
		d := a.receive(1)[0]
		_, _, err := a.v.refreshAndPick(r.Context(), one, true) // sets the watches
		r.must(err)
		// The request of the Nack is lost, and repeated after a reconnect.
		r.srv.Inject(zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, Do: zksynctest.Disconnect})
		nacked := make(chan error, 1)
		go func() { nacked <- d.Nack(r.Context()) }()
		dead.die()
		// The answer to the recovery's read of the ledgers comes after the repetition was sent.
		read := make(chan struct{})
		r.srv.Inject(zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMultiRead, Nth: 2, At: zksynctest.BeforeReply, Do: zksynctest.Hold(read)})
		time.AfterFunc(time.Second, func() { close(read) })
		got := make(map[string]bool)
		pick := func() {
			sel, _, err := a.v.refreshAndPick(r.Context(), func(int, int) int { return 2 }, true)
			r.must(err)
			for _, ref := range sel.refs {
				got[ref.Name] = true
			}
		}
		pick()
		r.must(<-nacked)
		// An idle consumer looks again and again only if a watch fires.
		for range 3 {
			pick()
			time.Sleep(time.Minute)
		}
		if !got[itemName(0)] || !got[itemName(1)] {
			r.Errorf("picked %v, want the messages 0 and 1", got)
		}
	})
}

// A consumer that has not listed a directory keeps the claims of another consumer on its messages.
func TestClaimsInADirectoryThatIsNotListed(t *testing.T) {
	withRig(t, 0, func(r rig) {
		r.putUrgent("0", "1", "2")
		a, b := r.open(ByPriority, true), r.open(ByPriority, true)
		b.receive(1)
		a.forgetOrder()
		picked := a.pick(2)
		r.must(r.srv.Create("/q/p-007", nil))
		r.must(r.srv.Create("/q/p-007/"+itemName(0), []byte("late")))
		synctest.Wait()
		if late := a.receive(1)[0]; string(late.Data) != "late" {
			r.Fatalf("message %s was claimed, want the one of the other directory", late.Data)
		}
		a.v.partitions.requeueAll(picked.refs)
		b.forgetOrder()
		// The first directory has free messages, so the other one is not listed.
		for _, want := range []string{"1", "2"} {
			if d := b.receive(1)[0]; string(d.Data) != want {
				r.Errorf("message %s was delivered, want %s", d.Data, want)
			}
		}
		if sel := b.pick(1); len(sel.refs) > 0 {
			r.Errorf("%s was picked, which another consumer has", sel.refs[0].path())
		}
	})
}
