package zksync

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A claim is a message that one session has to itself, by an ephemeral znode of
// the message's name.
type claim struct {
	ref
	o     *outlook
	data  []byte
	czxid int64
}

const (
	maxClaims = 128 // in one transaction
)

// fit is how many messages one read may bring, going by those before.
func (o *outlook) fit() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.fitLocked()
}

func (o *outlook) fitLocked() int { return max(1, readBudget/max(1, o.biggest)) }

// claim claims the messages that still exist and that no other consumer has claimed, in
// order. It gives the messages that it does not claim back to the outlook. ctx must be
// the consumer's life: if ctx ends before the answer, the outcome of the request is
// unknown.
//
// If there are other consumers, many of the messages may be gone by now, so claim
// reads them first. Otherwise it claims them blindly, which is cheaper for the
// servers, and complete reads them later.
//
// It claims at most most messages. gone is the number of messages that other clients
// have removed.
func (o *outlook) claim(ctx context.Context, refs []ref, most int) (found []*claim, gone int, err error) {
	found = make([]*claim, len(refs))
	for i, r := range refs {
		found[i] = &claim{ref: r, o: o}
	}
	o.mu.Lock()
	blindly := o.peers == 1
	o.mu.Unlock()
	if !blindly {
		var missing, left []*claim
		found, missing, left, err = o.read(ctx, found, most)
		for _, cl := range left {
			o.back(cl.ref)
		}
		for _, cl := range missing {
			o.done(cl.ref)
		}
		gone = len(missing)
	}
	if len(found) > most {
		found = o.keep(found, found[:most])
	}
	for again := true; again && err == nil && len(found) > 0; {
		found, again, err = o.claimAll(ctx, found, blindly)
	}
	if err == nil && len(found) > 0 {
		if err = o.secure(ctx); err != nil {
			o.release(len(found)) // claimAll has released the messages that it did not claim
		}
	}
	if err != nil {
		for _, cl := range found {
			o.back(cl.ref)
			if o.c.life.Err() != nil {
				o.s.DiscardOwn(o.claimPath(cl.ref), o.c.id) // if it comes about yet
			}
		}
		return nil, gone, err
	}
	return found, gone, nil
}

// claimAll claims all of the messages or none. If it claims none, it returns the
// messages to try again with. After a failure it returns the messages that were not
// given back yet.
func (o *outlook) claimAll(ctx context.Context, found []*claim, blindly bool) (left []*claim, again bool, err error) {
	if found = o.keep(found, found[:o.holdClaims(len(found))]); len(found) == 0 {
		return nil, false, nil
	}
	ops := make([]any, 0, 2*len(found))
	each := 1
	for _, cl := range found {
		if !blindly {
			ops = append(ops, &zk.CheckVersionRequest{Path: o.path(cl.ref), Version: -1})
			each = 2
		}
		ops = append(ops, &zk.CreateRequest{Path: o.claimPath(cl.ref), Data: o.c.id, Flags: zk.FlagEphemeral})
	}
	results, err := o.s.Multi(ctx, ops...)
	if err == nil {
		return found, false, nil
	}
	at, class := session.FailedOp(results), session.ClassOf(err)
	if class == session.ClassConnectionLost {
		ours, failed := o.lookForClaims(ctx, found)
		o.release(len(found) - len(ours))
		if failed != nil {
			return found, false, failed
		}
		return o.keep(found, ours), len(ours) == 0, nil
	}
	o.release(len(found))
	switch {
	case class == session.ClassTooLarge && len(found) > 1:
		return o.keep(found, found[:len(found)/2]), true, nil
	case at < 0:
		return found, false, err
	case at%each < each-1 && class == session.ClassNoNode:
		o.done(found[at/each].ref)
		return slices.Delete(found, at/each, at/each+1), true, nil
	case class == session.ClassNoNode:
		return found, true, o.s.MakeDir(ctx, o.c.q.child(claimsName))
	case class == session.ClassNodeExists:
		return o.unclaimed(ctx, found)
	}
	return found, false, err
}

// keep returns kept, and gives back the other messages of found.
func (o *outlook) keep(found, kept []*claim) []*claim {
	for _, cl := range found {
		if !slices.Contains(kept, cl) {
			o.back(cl.ref)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// unclaimed removes the messages from found that other consumers have claimed. A
// message that was given back meanwhile stays in its place, ahead of later messages.
func (o *outlook) unclaimed(ctx context.Context, found []*claim) ([]*claim, bool, error) {
	if err := o.listClaims(ctx); err != nil {
		return found, false, err
	}
	o.mu.Lock()
	claimed := o.claimed
	o.mu.Unlock()
	var left []*claim
	for _, cl := range found {
		if _, other := claimed[cl.claimName()]; other {
			o.pass(cl.ref)
		} else {
			left = append(left, cl)
		}
	}
	return left, true, nil
}

// lookForClaims finds those claims that we have after all, when the answer to
// their creation was lost. It looks behind a commit: a claim that does not exist now
// will not exist.
func (o *outlook) lookForClaims(ctx context.Context, found []*claim) ([]*claim, error) {
	if err := o.s.SyncQuorum(ctx, o.c.q.path); err != nil {
		return nil, err
	}
	reads := make([]session.Read, len(found))
	for i, cl := range found {
		reads[i] = session.ReadData(o.claimPath(cl.ref))
	}
	results, err := o.s.MultiRead(ctx, reads...)
	if err != nil {
		return nil, err
	}
	var ours []*claim
	for i, r := range results {
		if r.Err == nil && o.owns(r) {
			ours = append(ours, found[i])
		}
	}
	return ours, nil
}

// owns says whether a claim that was read is ours: of this session, and of this
// value, since others may consume under the same session.
func (o *outlook) owns(r session.ReadResult) bool {
	return r.Stat.EphemeralOwner == o.s.ID() && bytes.Equal(r.Data, o.c.id)
}

// holdClaims says that there may be claims of ours from now on, which the lease of the
// session is to protect: as many of n as the session has room for.
func (o *outlook) holdClaims(n int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	least := 0
	if o.held == o.takes {
		least = 1 // a value that has no claim may always have one
	}
	if n = o.load.reserve(n, o.claimBytes, least); n > 0 {
		o.holdLocked(n, 0)
	}
	return n
}

// holdLocked counts claims, and adds to the session's load; o.mu is held.
func (o *outlook) holdLocked(n, bytes int) {
	o.load.add(bytes)
	if o.held += n; o.lease == nil {
		o.lease = o.s.Lease()
	}
}

// release subtracts n from the number of our claims.
func (o *outlook) release(n int) {
	o.mu.Lock()
	if o.held -= n; o.held == 0 && o.lease != nil {
		o.lease.End()
		o.lease = nil
	}
	freed := o.freed
	o.mu.Unlock()
	o.load.add(-n * o.claimBytes)
	if freed != nil {
		freed()
	}
}

// unsettled is the number of our claims.
func (o *outlook) unsettled() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.held - o.takes
}

// holdTake protects a message that a Take is about to remove, as holdClaims protects
// claims, until releaseTake.
func (o *outlook) holdTake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.takes++
	o.holdLocked(1, o.claimBytes)
}

func (o *outlook) releaseTake() {
	o.mu.Lock()
	o.takes--
	o.mu.Unlock()
	o.release(1)
}

// secure makes sure that this consumer learns of the loss of its claims before
// another consumer can claim the messages.
func (o *outlook) secure(ctx context.Context) error {
	o.mu.Lock()
	lease := o.lease
	o.mu.Unlock()
	if lease == nil {
		return fmt.Errorf("%w: all claims are gone", ErrLost)
	}
	return znode.Grant(ctx, lease)
}

// removal is the transaction by which a message that we have claimed goes.
func (cl *claim) removal() commit.Tx {
	item, name := cl.o.path(cl.ref), cl.o.claimPath(cl.ref)
	return commit.Tx{
		Ops:  []any{&zk.DeleteRequest{Path: item, Version: -1}, &zk.DeleteRequest{Path: name, Version: -1}},
		Size: len(item) + len(name) + 40,
	}
}

// surrender is the transaction by which a claim goes and the message stays.
func (cl *claim) surrender() commit.Tx {
	name := cl.o.claimPath(cl.ref)
	return commit.Tx{Ops: []any{&zk.DeleteRequest{Path: name, Version: -1}}, Size: len(name) + 20}
}
