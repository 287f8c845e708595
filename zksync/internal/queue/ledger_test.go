package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A claim fails if another consumer has claimed messages since the state was read on which the claim relies, and then
// counts for nothing.
func TestClaimOfWhatAnotherHasClaimed(t *testing.T) {
	withRig(t, 1, func(r rig) {
		a, b := r.open(InOrder, true), r.open(InOrder, true)
		a.forgetOrder() // b has opened a ledger since
		first, second := a.pick(1), b.pick(1)
		if _, ok := a.claim(first); !ok {
			r.Error("the first claim failed")
		}
		if _, ok := b.claim(second); ok {
			r.Error("two consumers have claimed one message")
		}
		if n := b.v.claims.unsettled(); n != 0 {
			r.Errorf("the consumer counts %d claims, want none", n)
		}
		b.wantNames(0)
	})
}

// A claim whose request was lost fails if another consumer claims the message before the repetition.
func TestRepeatedClaimIsRefused(t *testing.T) {
	withRig(t, 1, func(r rig) {
		a, b := r.open(InOrder, true), r.open(InOrder, true)
		a.forgetOrder()
		first, second := a.pick(1), b.pick(1)
		f := zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, Do: zksynctest.Call(func() {
			if _, ok := b.claim(second); !ok {
				r.Error("the other claim failed")
			}
		})}
		r.srv.Inject(f)
		f.Do = zksynctest.Disconnect
		r.srv.Inject(f)
		if _, ok := a.claim(first); ok {
			r.Error("two consumers have claimed one message")
		}
	})
}

// A claim whose answer was lost succeeds.
func TestRepeatedClaimHasHappened(t *testing.T) {
	withRig(t, 1, func(r rig) {
		a := r.open(InOrder, true)
		sel := a.pick(1)
		r.srv.Inject(zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, At: zksynctest.AfterCommit, Do: zksynctest.Disconnect})
		c, err := a.ledger.claim(func(*orderState, int) selection { return sel }, nil, &idleLine{v: a.v})
		if err != nil || len(c.all) != 1 {
			r.Errorf("claimed %d messages: %v", len(c.all), err)
		}
	})
}

// An Ack removes the message and its name in the ledger. The next write of the order znode removes its entry.
func TestAckLeavesNothing(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a := r.open(InOrder, true)
		r.must(a.receive(1)[0].Nack(r.Context()))
		r.must(a.receive(1)[0].Ack(r.Context()))
		a.wantNames(0)
		if r.exists("/q/" + itemName(0)) {
			r.Error("the message was not removed")
		}
		r.must(a.receive(1)[0].Ack(r.Context()))
		for _, p := range a.state().table.partitions {
			if len(p.entries) > 0 {
				r.Errorf("entries are left: %v", p.entries)
			}
		}
	})
}

// A message that Nack has given back is delivered next, with a greater number of attempts.
func TestNackCounts(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a := r.open(InOrder, true)
		for n := range 3 {
			d := a.receive(1)[0]
			if string(d.Data) != "0" || d.Attempts != n+1 {
				r.Errorf("message %s with %d attempts was delivered, want 0 with %d", d.Data, d.Attempts, n+1)
			}
			r.must(d.Nack(r.Context()))
		}
	})
}

// Retry moves the message, and keeps the number of its attempts.
func TestRetryMovesTheMessage(t *testing.T) {
	withRig(t, 1, func(r rig) {
		a := r.open(InOrder, true)
		r.must(a.receive(1)[0].Retry(r.Context(), 0))
		if r.exists("/q/" + itemName(0)) {
			r.Error("the message is still in its former position")
		}
		a.forgetOrder()
		sel, err := a.v.next(r.Context(), one, func(context.Context) error { return nil }, false)
		r.must(err)
		all, ok := a.claim(sel)
		if !ok || len(all) != 1 || all[0].Attempts != 2 {
			r.Errorf("claimed %v: %v, want a message with 2 attempts", all, ok)
		}
	})
}

// A consumer that closes gives its messages back, and needs no recovery.
func TestCloseNeedsNoRecovery(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a, b := r.open(InOrder, true), r.open(InOrder, true)
		a.receive(2)
		a.close()
		st := b.state()
		if st.needsRecovery() {
			r.Errorf("%d ledgers were deleted, and %d need no recovery", st.removed, st.table.recovered)
		}
		b.forgetOrder()
		for i := range 2 {
			if d := b.receive(1)[0]; string(d.Data) != itemData(i) || d.Attempts != 1 {
				r.Errorf("message %s with %d attempts was delivered, want %d with 1", d.Data, d.Attempts, i)
			}
		}
	})
}

// A consumer that closes does not hide the death of another one, whose messages are delivered again with a greater
// number of attempts.
func TestCloseBesideADeadConsumer(t *testing.T) {
	withRig(t, 2, func(r rig) {
		dead, a, b := r.open(InOrder, true), r.open(InOrder, true), r.open(InOrder, true)
		dead.receive(1)
		a.forgetOrder()
		a.receive(1)
		dead.die()
		a.forgetOrder()
		a.close()
		b.forgetOrder()
		all := b.receive(2)
		if len(all) != 2 || string(all[0].Data) != "0" || all[0].Attempts != 2 {
			r.Errorf("%d messages were delivered, want 2, the first of them for the second time: %v", len(all), all[0].Attempts)
		}
	})
}

// An Ack that has happened succeeds, although its answer was lost and its repetition failed inside the server.
func TestAckAfterALossAndAServerError(t *testing.T) {
	withRig(t, 1, func(r rig) {
		a := r.open(InOrder, true)
		d := a.receive(1)[0]
		f := zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, At: zksynctest.AfterCommit, Do: zksynctest.Disconnect}
		r.srv.Inject(f)
		f.At, f.Nth, f.Do = zksynctest.BeforeCommit, 2, zksynctest.Error(-1)
		r.srv.Inject(f)
		r.must(d.Ack(r.Context()))
		a.wantNames(0)
	})
}

// An Ack of a message in a partition succeeds, although its connection broke and the look for its outcome met internal errors.
func TestAckWhoseOutcomeIsHardToRead(t *testing.T) {
	for _, at := range []zksynctest.Moment{zksynctest.AfterCommit, zksynctest.BeforeCommit} {
		t.Run(at.String(), func(t *testing.T) {
			withRig(t, 0, func(r rig) {
				r.putUrgent("0")
				a := r.open(ByPriority, true)
				d := a.receive(1)[0]
				f := zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, At: at, Do: zksynctest.Disconnect}
				r.srv.Inject(f)
				// The request after the broken one, and its repetitions.
				f.Nth, f.Times, f.At, f.Do = 1, 3, zksynctest.BeforeCommit, zksynctest.Error(-1)
				if at == zksynctest.AfterCommit {
					f.Nth = 2
				}
				r.srv.Inject(f)
				r.must(d.Ack(r.Context()))
				a.wantNames(0)
			})
		})
	}
}

// An Ack that has happened tells so after two internal errors in a row, and an Ack that has not happened does not.
func TestAckAfterTwoServerErrors(t *testing.T) {
	for _, at := range []zksynctest.Moment{zksynctest.AfterCommit, zksynctest.BeforeCommit} {
		t.Run(at.String(), func(t *testing.T) {
			withRig(t, 2, func(r rig) {
				a := r.open(InOrder, true)
				ds := a.receive(2)
				r.srv.Inject(zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, Times: 2, At: at, Do: zksynctest.Error(-1)})
				err := ds[0].Ack(r.Context())
				if happened := at == zksynctest.AfterCommit; happened != (err == nil) || happened == r.exists(ds[0].ID) || errors.Is(err, commit.ErrUnknown) {
					r.Errorf("Ack: %v, and the message exists: %t", err, r.exists(ds[0].ID))
				}
				// The ledger is usable.
				r.must(ds[1].Ack(r.Context()))
			})
		})
	}
}

// A message that the servers refuse to take back is given back as soon as they accept it, under the same session.
func TestGiveBackThatIsRefused(t *testing.T) {
	for name, giveBack := range map[string]func(r rig, d *Delivery){
		"Nack": func(r rig, d *Delivery) {
			if err := d.Nack(r.Context()); err == nil {
				r.Error("Nack succeeded")
			}
		},
		"not received": func(_ rig, d *Delivery) { _ = giveBack(0, d) },
	} {
		t.Run(name, func(t *testing.T) {
			withRig(t, 1, func(r rig) {
				a := r.open(InOrder, true)
				d := a.receive(1)[0]
				writesOrder := func(op zkserver.Op) bool { return len(op.Sub) == 2 }
				r.srv.Inject(zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, Match: writesOrder, Times: 6, Do: zksynctest.Error(-1)})
				giveBack(r, d)
				time.Sleep(time.Minute)
				got := receiveAll(a, true, nil)
				time.Sleep(time.Minute)
				if len(got) != 1 {
					r.Errorf("%d messages were received, want the one that was given back", len(got))
				}
				a.wantNames(0)
			})
		})
	}
}

// An Ack waits while servers answer the question for its outcome with internal errors, and learns the outcome later.
func TestAckWithoutAnOutcome(t *testing.T) {
	withRig(t, 1, func(r rig) {
		a := r.open(InOrder, true)
		d := a.receive(1)[0]
		f := zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, Path: d.ID, Times: 2, At: zksynctest.AfterCommit, Do: zksynctest.Error(-1)}
		r.srv.Inject(f)
		f.Op, f.Path, f.Times = zkserver.OpGetData, a.ledger.path, -1
		failing := r.srv.Inject(f)
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
		defer cancel()
		if err := d.Ack(ctx); !errors.Is(err, context.DeadlineExceeded) {
			r.Errorf("Ack: %v, want that it waits for the outcome", err)
		}
		failing.Remove()
		time.Sleep(2 * time.Second)
		if err := d.Ack(r.Context()); err != nil {
			r.Errorf("Ack: %v, though the message was removed", err)
		}
	})
}

// A removal that goes with a claim in one transaction happens if the servers refuse the claim, because of a quota.
func TestRemovalBesideARefusedClaim(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a := r.open(InOrder, true)
		d, sel := a.receive(1)[0], a.pick(1)
		removal, claim := newDrop(d.ref), newChange()
		removal.ops = []any{&zk.DeleteRequest{Path: d.ID, Version: -1}}
		claim.pick = func(*orderState, int) selection { return sel }
		r.srv.Inject(zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, Do: zksynctest.Error(-125)})
		a.ledger.start(removal, claim)
		<-removal.done
		<-claim.done
		if removal.err != nil || claim.err == nil {
			r.Errorf("removal: %v, claim: %v, want that the claim alone is refused", removal.err, claim.err)
		}
		a.wantNames(0)
	})
}

// A message that was received stays claimed when the answer to the deletion of another partition is lost.
func TestLostDeletionOfAPartition(t *testing.T) {
	inBubble(t, func(h harness) {
		h.must(h.srv.Create(testQueue, nil))
		due := time.Now().UnixMilli()
		var dirs []string
		for i := range 2 {
			at := due + int64(i)*partitionWidth.Milliseconds()
			dir := testQueue + "/" + DelayPartition(at)
			h.must(h.srv.Create(dir, nil))
			h.must(h.srv.Create(fmt.Sprintf("%s/%s%010d", dir, DelayedPrefix(at), 0), fmt.Append(nil, i)))
			dirs = append(dirs, dir)
		}
		h.srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Match: func(op zkserver.Op) bool { return op.Sub[0].Path == dirs[0] }, At: zksynctest.BeforeReply, Do: zksynctest.Disconnect})
		a := h.messages(h.consumer(h.srv.Connect(h), 8, ByTime))
		h.must(h.next(a, "0", 1).Ack(h.Context()))
		d := h.next(a, "1", 1)
		time.Sleep(2 * partitionAge)
		if _, ok := h.srv.Get(dirs[0]); ok {
			h.Fatal("the first partition was not deleted")
		}
		b := h.messages(h.consumer(h.srv.Connect(h), 8, ByTime))
		h.none(b, time.Minute)
		h.must(d.Ack(h.Context()))
	})
}

// When another client has deleted the ledger, the caller of a change sees that, and does not take the message for removed: Chan
// would deliver it again.
func TestChangesEndAfterTheirLedger(t *testing.T) {
	withRig(t, 1, func(r rig) {
		a := r.open(InOrder, true)
		c := newDrop(a.receive(1)[0].ref)
		c.endRemoval = func() {
			if a.ledger.usable.Err() == nil {
				r.Error("the ledger can still be used when the change ends")
			}
		}
		r.must(r.srv.Delete(a.ledger.path))
		if err := a.ledger.do(c); !errors.Is(err, session.ErrRemoved) {
			r.Error("the change:", err)
		}
	})
}

// When another client has deleted the ledger, the messages in it are not delivered any more once the session has checked the
// ledger: other consumers may have acknowledged them (claimCount.hold: the call of NotifyGone).
func TestDeletedLedgerEndsItsDeliveries(t *testing.T) {
	inBubble(t, func(h harness) {
		h.put(0, 2)
		a := h.consumer(h.srv.Connect(h), 2, InOrder)
		fromA := h.messages(a)
		first := h.next(fromA, "0", 1)
		synctest.Wait()
		h.must(h.srv.Delete(a.ledger.path))
		fromB := h.messages(h.consumer(h.srv.Connect(h), 2, InOrder))
		for i := range 2 {
			d := <-fromB
			if string(d.Data) != fmt.Sprint(i) {
				h.Fatalf("%q came from the other consumer, want %d", d.Data, i)
			}
			h.must(d.Ack(h.Context()))
		}
		time.Sleep(10 * time.Second) // a session timeout
		h.none(fromA, time.Minute)
		if err := first.Ack(h.Context()); !errors.Is(err, session.ErrRemoved) {
			h.Error("Ack:", err)
		}
	})
}

// An Ack whose session ends before an answer says that the outcome is unknown.
func TestAckWithoutAnOutcomeAtTheEndOfTheSession(t *testing.T) {
	withRig(t, 1, func(r rig) {
		a := r.open(InOrder, true)
		d := a.receive(1)[0]
		s := a.v.s
		release := make(chan struct{})
		r.srv.Inject(zksynctest.Fault{Session: s.ID(), Op: zkserver.OpMulti, Path: d.ID, At: zksynctest.BeforeReply, Do: zkserver.Hold(release)})
		done := make(chan error, 1)
		go func() { done <- d.Ack(r.Context()) }()
		synctest.Wait()
		r.must(r.srv.ExpireSession(s.ID()))
		if err := <-done; !errors.Is(err, commit.ErrUnknown) || !errors.Is(err, session.ErrLost) {
			r.Errorf("Ack: %v, want ErrUnknown and ErrLost, as the message is gone", err)
		}
		close(release)
	})
}

// An Ack whose consumer may not read its ledger any more says that the outcome is unknown.
func TestAckWithoutAnOutcomeThatMayBeRead(t *testing.T) {
	withRig(t, 1, func(r rig) {
		a := r.open(InOrder, true)
		d := a.receive(1)[0]
		f := zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, Path: d.ID, Times: 2, At: zksynctest.AfterCommit, Do: zksynctest.Error(-1)}
		r.srv.Inject(f)
		f.Op, f.Path, f.Times, f.Do = zkserver.OpGetData, a.ledger.path, -1, zksynctest.Error(-102)
		r.srv.Inject(f)
		if err := d.Ack(r.Context()); !errors.Is(err, commit.ErrUnknown) {
			r.Errorf("Ack: %v, want ErrUnknown, as the message is gone", err)
		}
	})
}
