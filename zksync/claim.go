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
	messageRef
	view  *queueView
	data  []byte
	czxid int64
}

const (
	maxClaims = 128 // in one transaction
)

// maxRead is how many messages one read may bring, going by those before.
func (v *queueView) maxRead() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.maxReadLocked()
}

func (v *queueView) maxReadLocked() int { return max(1, readBudget/max(1, v.largestRecent)) }

// claimMessages claims the messages that still exist and that no other consumer has claimed, in
// order. It gives the messages that it does not claim back to the view. ctx must be
// the consumer's life: if ctx ends before the answer, the outcome of the request is
// unknown.
//
// If there are other consumers, many of the messages may be gone by now, so claim
// reads them first. Otherwise it claims them blindly, which is cheaper for the
// servers, and complete reads them later.
//
// It claims at most most messages. gone is the number of messages that other clients
// have removed.
func (v *queueView) claimMessages(ctx context.Context, refs []messageRef, most int) (found []*claim, gone int, err error) {
	found = make([]*claim, len(refs))
	for i, r := range refs {
		found[i] = &claim{messageRef: r, view: v}
	}
	v.mu.Lock()
	blindly := v.peers == 1
	v.mu.Unlock()
	if !blindly {
		var missing, left []*claim
		found, missing, left, err = v.readMessages(ctx, found, most)
		for _, cl := range left {
			v.requeue(cl.messageRef)
		}
		for _, cl := range missing {
			v.forgetMessage(cl.messageRef)
		}
		gone = len(missing)
	}
	if len(found) > most {
		found = v.keepOnly(found, found[:most])
	}
	for again := true; again && err == nil && len(found) > 0; {
		found, again, err = v.claimAll(ctx, found, blindly)
	}
	if err == nil && len(found) > 0 {
		if err = v.confirmLease(ctx); err != nil {
			v.releaseHeld(len(found)) // claimAll has released the messages that it did not claim
		}
	}
	if err != nil {
		for _, cl := range found {
			v.requeue(cl.messageRef)
			if v.c.cleanupCtx.Err() != nil {
				v.s.DiscardOwn(v.claimPath(cl.messageRef), v.c.id) // if it comes about yet
			}
		}
		return nil, gone, err
	}
	return found, gone, nil
}

// claimAll claims all of the messages or none. If it claims none, it returns the
// messages to try again with. After a failure it returns the messages that were not
// given back yet.
func (v *queueView) claimAll(ctx context.Context, found []*claim, blindly bool) (left []*claim, again bool, err error) {
	if found = v.keepOnly(found, found[:v.holdClaims(len(found))]); len(found) == 0 {
		return nil, false, nil
	}
	ops := make([]any, 0, 2*len(found))
	each := 1
	for _, cl := range found {
		if !blindly {
			ops = append(ops, &zk.CheckVersionRequest{Path: v.path(cl.messageRef), Version: -1})
			each = 2
		}
		ops = append(ops, &zk.CreateRequest{Path: v.claimPath(cl.messageRef), Data: v.c.id, Flags: zk.FlagEphemeral})
	}
	results, err := v.s.Multi(ctx, ops...)
	if err == nil {
		return found, false, nil
	}
	at, class := session.FailedOp(results), session.ClassOf(err)
	if class == session.ClassConnectionLost {
		ours, failed := v.findOwnClaims(ctx, found)
		v.releaseHeld(len(found) - len(ours))
		if failed != nil {
			return found, false, failed
		}
		return v.keepOnly(found, ours), len(ours) == 0, nil
	}
	v.releaseHeld(len(found))
	switch {
	case class == session.ClassTooLarge && len(found) > 1:
		return v.keepOnly(found, found[:len(found)/2]), true, nil
	case at < 0:
		return found, false, err
	case at%each < each-1 && class == session.ClassNoNode:
		v.forgetMessage(found[at/each].messageRef)
		return slices.Delete(found, at/each, at/each+1), true, nil
	case class == session.ClassNoNode:
		return found, true, v.s.MakeDir(ctx, v.c.q.child(claimsName))
	case class == session.ClassNodeExists:
		return v.withoutClaimed(ctx, found)
	}
	return found, false, err
}

// keepOnly returns kept, and gives back the other messages of found.
func (v *queueView) keepOnly(found, kept []*claim) []*claim {
	for _, cl := range found {
		if !slices.Contains(kept, cl) {
			v.requeue(cl.messageRef)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// withoutClaimed removes the messages from found that other consumers have claimed. A
// message that was given back meanwhile stays in its place, ahead of later messages.
func (v *queueView) withoutClaimed(ctx context.Context, found []*claim) ([]*claim, bool, error) {
	if err := v.listClaims(ctx); err != nil {
		return found, false, err
	}
	v.mu.Lock()
	claimed := v.claimNames
	v.mu.Unlock()
	var left []*claim
	for _, cl := range found {
		if _, other := claimed[cl.claimName()]; other {
			v.markClaimed(cl.messageRef)
		} else {
			left = append(left, cl)
		}
	}
	return left, true, nil
}

// findOwnClaims finds those claims that we have after all, when the answer to
// their creation was lost. It looks behind a commit: a claim that does not exist now
// will not exist.
func (v *queueView) findOwnClaims(ctx context.Context, found []*claim) ([]*claim, error) {
	if err := v.s.SyncQuorum(ctx, v.c.q.path); err != nil {
		return nil, err
	}
	reads := make([]session.Read, len(found))
	for i, cl := range found {
		reads[i] = session.ReadData(v.claimPath(cl.messageRef))
	}
	results, err := v.s.MultiRead(ctx, reads...)
	if err != nil {
		return nil, err
	}
	var ours []*claim
	for i, r := range results {
		if r.Err == nil && v.isOwnClaim(r) {
			ours = append(ours, found[i])
		}
	}
	return ours, nil
}

// isOwnClaim says whether a claim that was read is ours: of this session, and of this
// value, since others may consume under the same session.
func (v *queueView) isOwnClaim(r session.ReadResult) bool {
	return r.Stat.EphemeralOwner == v.s.ID() && bytes.Equal(r.Data, v.c.id)
}

// holdClaims says that there may be claims of ours from now on, which the lease of the
// session is to protect: as many of n as the session has room for.
func (v *queueView) holdClaims(n int) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	least := 0
	if v.held == v.takes {
		least = 1 // a value that has no claim may always have one
	}
	if n = v.load.reserve(n, v.claimBytes, least); n > 0 {
		v.holdLocked(n, 0)
	}
	return n
}

// holdLocked counts claims, and adds to the session's load; o.mu is held.
func (v *queueView) holdLocked(n, bytes int) {
	v.load.adjust(bytes)
	if v.held += n; v.lease == nil {
		v.lease = v.s.Lease()
	}
}

// releaseHeld subtracts n from the number of our claims.
func (v *queueView) releaseHeld(n int) {
	v.mu.Lock()
	if v.held -= n; v.held == 0 && v.lease != nil {
		v.lease.End()
		v.lease = nil
	}
	onRelease := v.onRelease
	v.mu.Unlock()
	v.load.adjust(-n * v.claimBytes)
	if onRelease != nil {
		onRelease()
	}
}

// unsettledCount is the number of our claims.
func (v *queueView) unsettledCount() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.held - v.takes
}

// holdTake protects a message that a Take is about to remove, as holdClaims protects
// claims, until releaseTake.
func (v *queueView) holdTake() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.takes++
	v.holdLocked(1, v.claimBytes)
}

func (v *queueView) releaseTake() {
	v.mu.Lock()
	v.takes--
	v.mu.Unlock()
	v.releaseHeld(1)
}

// confirmLease makes sure that this consumer learns of the loss of its claims before
// another consumer can claim the messages.
func (v *queueView) confirmLease(ctx context.Context) error {
	v.mu.Lock()
	lease := v.lease
	v.mu.Unlock()
	if lease == nil {
		return fmt.Errorf("%w: all claims are gone", ErrLost)
	}
	return znode.Grant(ctx, lease)
}

// removeTx is the transaction by which a message that we have claimed goes.
func (cl *claim) removeTx() commit.Tx {
	item, name := cl.view.path(cl.messageRef), cl.view.claimPath(cl.messageRef)
	return commit.Tx{
		Ops:  []any{&zk.DeleteRequest{Path: item, Version: -1}, &zk.DeleteRequest{Path: name, Version: -1}},
		Size: len(item) + len(name) + 40,
	}
}

// releaseTx is the transaction by which a claim goes and the message stays.
func (cl *claim) releaseTx() commit.Tx {
	name := cl.view.claimPath(cl.messageRef)
	return commit.Tx{Ops: []any{&zk.DeleteRequest{Path: name, Version: -1}}, Size: len(name) + 20}
}
