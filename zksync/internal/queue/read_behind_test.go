package queue

import (
	"context"
	"testing"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// claimAndRead claims picked messages, with their reads behind the transaction, and returns the messages that were found.
// answered says whether these reads must have results.
func (c *tester) claimAndRead(sel selection, answered bool) []*Delivery {
	c.Helper()
	reader := &messageReader{v: c.v}
	reader.largest.Store(1) // as after the reads of small messages
	done, err := c.ledger.claim(func(*orderState, int) selection { return sel }, reader.readBehind, &idleLine{v: c.v})
	c.must(err)
	if has := done.reads.results(c.Context()) != nil; has != answered {
		c.Errorf("the reads behind the claim have results: %v", has)
	}
	found, unread, err := reader.read(c.Context(), done.all, done.reads)
	c.must(err)
	if len(unread) > 0 {
		c.Errorf("%d of %d messages were not read", len(unread), len(done.all))
	}
	return found
}

// A claim and the read of its messages need two requests, and all messages of the claim are delivered.
func TestReadBehindTheClaim(t *testing.T) {
	for _, k := range []Kind{InOrder, ByPriority} {
		withRig(t, 3, func(r rig) {
			if k.Name == ByPriority.Name {
				r.putUrgent("0", "1", "2")
			}
			a := r.open(k, true)
			sel := a.pick(3)
			r.srv.ResetOps()
			found := a.claimAndRead(sel, true)
			if len(found) != 3 || string(found[2].Data) != "2" {
				r.Errorf("%s: read %d messages", k.Name, len(found))
			}
			n := 0
			for _, op := range r.srv.Ops() {
				if op.Code == zkserver.OpMultiRead {
					n++
				}
			}
			if n != 1 {
				r.Errorf("%s: %d requests to read the messages, want 1", k.Name, n)
			}
		})
	}
}

// A message that another client removes after the reads behind a claim that the server refuses for a moment is not delivered:
// the claim happens later, and its messages are read again.
func TestReadBehindARefusedClaim(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a := r.open(InOrder, true)
		sel := a.pick(2)
		r.srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Do: zksynctest.Error(-127)})
		r.srv.Inject(zksynctest.Fault{Op: zkserver.OpMultiRead, At: zksynctest.AfterCommit, Do: zkserver.Call(func() { r.must(r.srv.Delete("/q/" + itemName(0))) })})
		found := a.claimAndRead(sel, false)
		if len(found) != 1 || string(found[0].Data) != "1" {
			r.Errorf("%d messages were delivered, the first %q, want only 1", len(found), found[0].Data)
		}
	})
}

// A message that a Take removes before the claim is not delivered, because the reads come behind the claim.
func TestReadBehindAClaimOfATakenMessage(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a, b := r.open(InOrder, true), r.open(InOrder, false)
		sel := a.pick(2)
		r.srv.Inject(zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, Do: zkserver.Call(func() {
			if data, ok, err := b.Take(context.Background(), false); err != nil || !ok || string(data) != "0" {
				r.Errorf("Take: %q, %v, %v", data, ok, err)
			}
		})})
		if found := a.claimAndRead(sel, true); len(found) != 1 || string(found[0].Data) != "1" {
			r.Errorf("%d messages were delivered, the first %q, want only 1", len(found), found[0].Data)
		}
	})
}

// A message of another directory of the same name is not delivered under the claim on a message of the former directory.
func TestReadBehindAClaimInADirectoryThatWasRemade(t *testing.T) {
	withRig(t, 0, func(r rig) {
		r.putUrgent("old")
		a := r.open(ByPriority, true)
		sel := a.pick(1)
		r.remake("new")
		if found := a.claimAndRead(sel, true); len(found) > 0 {
			r.Errorf("%q was delivered, which is not claimed", found[0].Data)
		}
	})
}

// Few bytes are read right behind a claim, and none as long as the sizes of the messages are not known.
func TestReadBehindIsSmall(t *testing.T) {
	withRig(t, 128, func(r rig) {
		a := r.open(InOrder, true)
		refs := a.pick(128).refs
		for _, c := range []struct{ size, want int }{{0, 0}, {1, 128}, {100, 128}, {1 << 10, 64}, {1 << 14, 4}, {1 << 17, 0}} {
			reader, n := &messageReader{v: a.v}, 0
			reader.largest.Store(int64(c.size))
			if reads := reader.readBehind(refs); reads != nil {
				for _, some := range reads.chunks {
					n += len(some)
				}
			}
			if n != c.want {
				r.Errorf("messages of %d bytes: %d are read behind the claim, want %d", c.size, n, c.want)
			}
		}
	})
}

// Messages that are gone say nothing about the sizes of others.
func TestReadBehindAMessageThatIsGone(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a := r.open(InOrder, true)
		reader := &messageReader{v: a.v}
		sel := a.pick(1)
		r.must(r.srv.Delete("/q/" + itemName(0)))
		done, err := a.ledger.claim(func(*orderState, int) selection { return sel }, nil, &idleLine{v: a.v})
		r.must(err)
		found, _, err := reader.read(r.Context(), done.all, nil)
		r.must(err)
		if len(found) > 0 || reader.readBehind(a.pick(1).refs) != nil {
			r.Errorf("found %d messages; want none, and no reads behind the next claim", len(found))
		}
	})
}
