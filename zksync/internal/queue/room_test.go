package queue

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// receiveNames receives messages with a new consumer and acknowledges them, until none comes for an hour. It returns their
// data.
func (r rig) receiveNames(kind Kind, opts ...session.Option) (got map[string]bool) {
	r.Helper()
	got = make(map[string]bool)
	c := r.open(kind, true, opts...)
	defer c.close()
	all := receiveAll(c, false, nil)
	for {
		select {
		case d := <-all:
			if got[string(d.Data)] {
				r.Errorf("%s came again", d.Data)
			}
			got[string(d.Data)] = true
			r.must(d.Ack(r.Context()))
		case <-time.After(time.Hour):
			return got
		}
	}
}

// A recovery returns messages that take no more room than before, also if claimed ones have made the table larger than
// recoveries may.
func TestRecoveryInAFullTable(t *testing.T) {
	withRig(t, 0, func(r rig) {
		const n = 60
		for i := range n {
			r.must(r.srv.Create(fmt.Sprintf("/q/%s%010d", entryPrefix, 1_000_000_000+2*i), fmt.Append(nil, i)))
		}
		dead := r.open(LikeKazoo, true)
		dead.receive(n)
		dead.die()
		if got := r.receiveNames(LikeKazoo, session.WithMaxRequest(1400)); len(got) != n {
			r.Errorf("%d messages came, want %d", len(got), n)
		}
	})
}

// A recovery returns as many messages as fit, beside messages of the living between them, and holds up no other message.
func TestRecoveryOfPartsOfRanges(t *testing.T) {
	withRig(t, 0, func(r rig) {
		const n = 120
		for i := range n {
			r.must(r.srv.Create(fmt.Sprintf("/q/%s%010d", entryPrefix, 1_000_000_000+i), fmt.Append(nil, i)))
		}
		dead, living := r.open(LikeKazoo, true), r.open(LikeKazoo, true)
		var kept []*Delivery
		for range n / 2 {
			dead.forgetOrder()
			dead.receive(1)
			living.forgetOrder()
			kept = append(kept, living.receive(1)...)
		}
		dead.die()
		r.must(r.srv.Create("/q/"+entryPrefix+"2000000000", fmt.Append(nil, "new")))
		small := session.WithMaxRequest(1024)
		got := r.receiveNames(LikeKazoo, small)
		if !got["new"] || len(got) < 10 {
			r.Errorf("%d messages came beside those of the living, want more, and the new one: %v", len(got), got["new"])
		}
		for _, d := range kept {
			r.must(d.Ack(r.Context()))
		}
		living.close()
		if rest := r.receiveNames(LikeKazoo, small); len(got)+len(rest) != n/2+1 {
			r.Errorf("%d messages came, want %d", len(got)+len(rest), n/2+1)
		}
	})
}

// A message is given back as soon as a claim table has room that other consumers have filled.
func TestNackBesideATableThatBecomesSmaller(t *testing.T) {
	withRig(t, 0, func(r rig) {
		const n = 100
		for i := range n {
			r.must(r.srv.Create(fmt.Sprintf("/q/%s%010d", entryPrefix, 1_000_000_000+2*i), fmt.Append(nil, i)))
		}
		a, other := r.open(LikeKazoo, true, session.WithMaxRequest(1024)), r.open(LikeKazoo, true)
		kept := a.receive(1)
		other.forgetOrder()
		others := other.receive(n - 1)
		a.forgetOrder()
		if err := kept[0].Nack(r.Context()); !errors.Is(err, session.ErrTooLarge) {
			r.Errorf("Nack: %v, want ErrTooLarge", err)
		}
		for _, d := range others {
			r.must(d.Ack(r.Context()))
		}
		other.close()
		if got := r.receiveNames(LikeKazoo); !got["0"] {
			r.Error("the message was not given back")
		}
	})
}

// A message is claimed out of a range of returned messages of which every second one has gone.
func TestClaimOutOfARangeWithGaps(t *testing.T) {
	withRig(t, 0, func(r rig) {
		const n = 200
		for i := range n {
			r.put(1_000_000_000 + i)
		}
		other := r.open(InOrder, true)
		for _, d := range other.receive(n) {
			r.must(d.Nack(r.Context()))
		}
		for i := 1; i < n; i += 2 {
			r.must(r.srv.Delete("/q/" + itemName(1_000_000_000+i)))
		}
		if got := r.receiveNames(InOrder, session.WithMaxRequest(1024)); len(got) != n/2 {
			r.Errorf("%d messages came, want %d", len(got), n/2)
		}
	})
}

// A message that is given back comes again, although the cursors of many partitions fill the claim table.
func TestNackBesideManyPartitions(t *testing.T) {
	withRig(t, 0, func(r rig) {
		const n = 80
		for i := range n {
			dir := "/q/" + PriorityPartition(i)
			r.must(r.srv.Create(dir, nil))
			for j := range 2 {
				r.must(r.srv.Create(dir+"/"+itemName(j), fmt.Appendf(nil, "%d/%d", i, j)))
			}
		}
		other := r.open(ByPriority, true)
		for range n {
			other.receive(2) // and keep them, so that the cursors stay
			other.forgetOrder()
		}
		r.must(r.srv.Create("/q/"+PriorityPartition(0)+"/"+itemName(1_000_000_000), []byte("last")))
		a := r.open(ByPriority, true, session.WithMaxRequest(1024))
		r.must(a.receive(1)[0].Nack(r.Context()))
		if got := r.receiveNames(ByPriority, session.WithMaxRequest(1024)); !got["last"] {
			r.Error("the message that was given back does not come")
		}
	})
}

// Messages that are given back come again to a consumer that skips more messages than fit into the claim table.
func TestNackBesideSkippedMessages(t *testing.T) {
	withRig(t, 0, func(r rig) {
		const skipped, n = 60, 10
		r.putApart(skipped)
		c := r.open(InOrder, true, session.WithMaxRequest(1024))
		for range skipped {
			d := c.receive(1)[0]
			c.v.skip(d.ref, zk.ErrNoAuth)
			_, err := c.ledger.giveBack(0, d.ref)
			r.must(err)
			d.endClaim((*partitionList).requeue)
		}
		for i := range n {
			r.put(1_500_000_000 + 2*i)
		}
		synctest.Wait() // the consumer learns of them
		for _, d := range c.receive(n) {
			r.must(d.Nack(r.Context()))
		}
		got := receiveAll(c, false, nil)
		for i := range n {
			select {
			case d := <-got:
				r.must(d.Ack(r.Context()))
			case <-time.After(time.Hour):
				r.Fatalf("no message after %d of %d", i, n)
			}
		}
	})
}

// A write of a long claim table leaves the messages claimed that others have, whether the writer has listed them or not.
func TestCursorsOfClaimedMessages(t *testing.T) {
	withRig(t, 0, func(r rig) {
		const n = 80
		a, b := r.open(ByPriority, true, session.WithMaxRequest(1024)), r.open(ByPriority, true)
		for i := range n {
			r.must(r.srv.Create("/q/"+PriorityPartition(i), nil))
		}
		put := func(i int) { r.must(r.srv.Create("/q/"+PriorityPartition(i)+"/"+itemName(0), nil)) }
		a.pick(0) // lists all
		put(n - 1)
		synctest.Wait()
		d := a.receive(1)[0]
		for i := range n - 1 {
			put(i)
		}
		synctest.Wait()
		for range n - 1 {
			b.receive(1) // keeps it
		}
		if st := b.state(); !a.v.isLong(st) {
			r.Fatalf("a table of %d bytes is not long", st.size)
		}
		for _, listed := range []bool{false, true} {
			a.forgetOrder()
			if listed {
				a.pick(0)
			}
			r.must(d.Nack(r.Context()))
			if next := r.open(ByPriority, false).pick(1).refs; len(next) != 1 || next[0].path() != d.ID {
				r.Fatalf("listed: %v: the next one is %v, want %s", listed, next, d.ID)
			}
			d = a.receive(1)[0]
		}
	})
}

// A PriorityQueue goes on when each priority has had a message, although all have a message left and no listing is due.
func TestCursorsOfManyPartitions(t *testing.T) {
	withRig(t, 0, func(r rig) {
		c := r.open(ByPriority, true, session.WithMaxRequest(1024))
		for i := MaxPriority; i >= 0; i-- {
			dir := "/q/" + PriorityPartition(i)
			r.must(r.srv.Create(dir, nil))
			for j := range 2 {
				r.must(r.srv.Create(dir+"/"+itemName(j), fmt.Append(nil, i, j)))
			}
			synctest.Wait() // the consumer learns of them
			r.must(c.receive(1)[0].Ack(r.Context()))
		}
		for i := range MaxPriority + 1 {
			d := c.receive(1)[0]
			if want := fmt.Sprint(i, 1); string(d.Data) != want {
				r.Fatalf("%q came, want %q", d.Data, want)
			}
			r.must(d.Ack(r.Context()))
		}
	})
}
