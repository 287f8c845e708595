package queue

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// remadePriority has a message of a priority received, creates the directory again with a message of the same name,
// and returns the former message.
func remadePriority(r rig, before func()) (*tester, *Delivery) {
	const dir, name = "/q/p-005", "/q/p-005/qn-0000000000"
	r.must(r.srv.Create(dir, nil))
	r.must(r.srv.Create(name, []byte("old")))
	c := r.open(ByPriority, true)
	d := c.receive(1)[0]
	before()
	r.must(r.srv.Delete(name))
	r.must(r.srv.Delete(dir))
	r.must(r.srv.Create(dir, nil))
	r.must(r.srv.Create(name, []byte("new")))
	synctest.Wait()
	return c, d
}

// Ack does not remove another message of the same name, after the directory was deleted and created again.
func TestAckAfterADirectoryWasCreatedAgain(t *testing.T) {
	withRig(t, 0, func(r rig) {
		_, d := remadePriority(r, func() {})
		if err := d.Ack(r.Context()); !errors.Is(err, session.ErrRemoved) {
			r.Errorf("Ack: %v, want ErrRemoved", err)
		}
		if !r.exists(d.ID) {
			r.Error("the new message was removed")
		}
	})
}

// Ack does not remove another message of the same name if no watch has reported the deletion of the directory.
func TestAckWithoutAWatchOnTheDirectory(t *testing.T) {
	withRig(t, 0, func(r rig) {
		_, d := remadePriority(r, func() {
			r.must(r.srv.Set("/q/p-005", []byte("uses the watch up")))
			synctest.Wait()
		})
		if err := d.Ack(r.Context()); !errors.Is(err, session.ErrRemoved) {
			r.Errorf("Ack: %v, want ErrRemoved", err)
		}
		if !r.exists(d.ID) {
			r.Error("the new message was removed")
		}
	})
}

// A new directory of the same name is another partition.
func TestPartitionsAreToldApart(t *testing.T) {
	withRig(t, 0, func(r rig) {
		c, _ := remadePriority(r, func() {})
		if all := c.receive(1); len(all) != 1 || string(all[0].Data) != "new" {
			r.Errorf("%d messages were delivered, want the new one", len(all))
		}
	})
}

// A message that cannot be removed, because it has a child, is not delivered again.
func TestAckOfAMessageWithAChild(t *testing.T) {
	withRig(t, 1, func(r rig) {
		r.must(r.srv.Create("/q/"+itemName(0)+"/child", nil))
		a := r.open(InOrder, true)
		if err := a.receive(1)[0].Ack(r.Context()); session.ClassOf(err) != session.ClassNotEmpty {
			r.Errorf("Ack: %v, want that the message has a child", err)
		}
		if sel := a.pick(1); len(sel.refs) > 0 {
			r.Error("the message was picked again")
		}
	})
}

// A Take that is given up while its removal is under way returns the data.
func TestTakeGivenUpReturnsTheData(t *testing.T) {
	withRig(t, 1, func(r rig) {
		a := r.open(InOrder, false)
		ctx, cancel := context.WithCancel(r.Context())
		until := make(chan struct{})
		r.srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: "/q/" + itemName(0), At: zksynctest.AfterCommit, Do: zksynctest.Hold(until)})
		time.AfterFunc(time.Second, cancel)
		data, ok, err := a.Take(ctx, true)
		if string(data) != "0" || !ok || !errors.Is(err, commit.ErrUnknown) {
			r.Errorf("Take: %q, %v, %v, want the data and ErrUnknown", data, ok, err)
		}
		close(until)
	})
}

// A Take removes a message that Chan has delivered and failed to remove, and does not return it.
func TestTakeOfAMessageBeingRemoved(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a := r.open(InOrder, true)
		d := a.receive(1)[0]
		a.removing.add(d.ref.message, d.czxid)
		_ = giveBack(0, d)
		if data, ok, err := a.Take(r.Context(), false); string(data) != "1" || !ok || err != nil {
			r.Errorf("Take: %q, %v, %v, want 1", data, ok, err)
		}
		if r.exists(d.ID) {
			r.Error("the message that was delivered is left")
		}
	})
}

// A message that a Take gives up between the pick and the claim of a later message can be claimed afterwards.
func TestTakeGivenUpBesideAClaim(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a := r.open(InOrder, true)
		taken := a.pick(1) // by a Take
		sel := a.pick(1)   // by the stream
		a.v.partitions.requeueAll(taken.refs)
		a.claim(sel)
		r.must(a.v.invalidate(r.Context()))
		if sel := a.pick(1); len(sel.refs) != 1 || sel.refs[0].Seq != 0 {
			r.Errorf("picked %v, want message 0, which no consumer has claimed", sel.refs)
		}
	})
}

// A message that is given back waits again before its consumer has room for another one, so that no later message overtakes it.
func TestGivenBackBeforeThereIsRoom(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a := r.open(InOrder, true)
		d := a.receive(1)[0]
		var first []messageRef
		a.v.claims.onRelease = func() {
			first = append(first, a.v.partitions.all[0].pick(a.v.order.known(), 1, 0)...)
		}
		r.must(d.Nack(r.Context()))
		if len(first) == 0 || first[0].path() != d.ID {
			r.Errorf("the first message is %v, want %s", first, d.ID)
		}
	})
}

// An Ack whose session was lost tells whether the message may have been removed.
func TestAckOfALostSession(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a := r.open(InOrder, true)
		all := a.receive(2)
		never := make(chan struct{})
		r.srv.Inject(zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, At: zksynctest.AfterCommit, Do: zksynctest.Hold(never)})
		acked := make(chan error, 1)
		go func() { acked <- all[0].Ack(r.Context()) }()
		synctest.Wait()
		a.die()
		close(never)
		if err := <-acked; !errors.Is(err, session.ErrLost) || !errors.Is(err, commit.ErrUnknown) {
			r.Errorf("Ack under way: %v", err)
		}
		if r.exists(all[0].ID) {
			r.Error("the message was not removed")
		}
		if err := all[1].Ack(r.Context()); !errors.Is(err, session.ErrLost) || errors.Is(err, commit.ErrUnknown) {
			r.Errorf("Ack afterwards: %v", err)
		}
	})
}

// Retry with the greatest delay keeps the message, which is due at the latest time that a name can have.
func TestRetryWithTheGreatestDelay(t *testing.T) {
	withRig(t, 1, func(r rig) {
		a := r.open(InOrder, true)
		r.must(a.receive(1)[0].Retry(r.Context(), math.MaxInt64))
		names, _ := r.srv.Children("/q/" + laterName)
		items := ItemsOf(names, parseLater)
		if len(items) != 1 || items[0].Due != MaxDueMillis {
			r.Errorf("messages of Retry: %v, want one that is due at %d", names, int64(MaxDueMillis))
		}
	})
}
