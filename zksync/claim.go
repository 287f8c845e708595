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

// A claim is a message that one session has claimed by an ephemeral znode of the
// message's name. No other consumer delivers the message while the znode exists.
type claim struct {
	messageRef
	view  *queueView
	data  []byte
	czxid int64
}

// maxClaims is the number of claims in one transaction.
const maxClaims = 128

// maxRead returns how many messages one read may bring into memory. It goes by the
// sizes of earlier messages.
func (v *queueView) maxRead() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.maxReadLocked()
}

func (v *queueView) maxReadLocked() int { return max(1, readBudget/max(1, v.largestRecent)) }

// claimMessages claims at most most messages, in order, of the messages that still exist
// and that no other consumer has claimed. It requeues the messages that it does not
// claim. gone is the number of messages that other clients have removed. ctx must be
// cleanupCtx: if ctx ends before the answer, the outcome of the request is unknown.
//
// If there are other consumers, many of the messages may be gone by now, and
// claimMessages reads them first. Otherwise it claims them blindly, which is cheaper for
// the servers, and readClaimed reads them later.
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
	// claimAll claims all messages or none. Repeat it without the messages that stood in
	// its way.
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
				// Close did not wait for the answer. The servers may still create the claim,
				// and it would keep the message from all consumers.
				v.s.DiscardOwn(v.claimPath(cl.messageRef), v.c.id)
			}
		}
		return nil, gone, err
	}
	return found, gone, nil
}

// claimAll claims all of the messages or none, in one transaction. If it claims none, it
// returns the messages to try again with. After a failure it returns the messages that
// it has not requeued.
func (v *queueView) claimAll(ctx context.Context, found []*claim, blindly bool) (left []*claim, again bool, err error) {
	if found = v.keepOnly(found, found[:v.holdClaims(len(found))]); len(found) == 0 {
		return nil, false, nil
	}
	ops := make([]any, 0, 2*len(found))
	each := 1
	for _, cl := range found {
		if !blindly {
			// Another consumer may have removed the message since it was read. Its claim is
			// gone, too, so that the creation of ours would succeed.
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
		// The answer was lost: the claims may exist, and stay as long as the session. Look
		// for them instead of a second attempt, which our own claims would refuse.
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
		return found, false, err // no operation is to blame
	case at%each < each-1 && class == session.ClassNoNode:
		// A check has failed: the message is gone.
		v.forgetMessage(found[at/each].messageRef)
		return slices.Delete(found, at/each, at/each+1), true, nil
	case class == session.ClassNoNode:
		// A creation has failed: the directory of the claims is missing.
		return found, true, v.s.MakeDir(ctx, v.c.q.child(claimsName))
	case class == session.ClassNodeExists:
		return v.withoutClaimed(ctx, found)
	}
	return found, false, err
}

// keepOnly returns kept, and requeues the other messages of found.
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

// withoutClaimed removes the messages from found that other consumers have claimed. It
// reports true, so that claimAll is called again.
func (v *queueView) withoutClaimed(ctx context.Context, found []*claim) ([]*claim, bool, error) {
	// List the claims anew. A claim that stood in the way may be gone by now, and its
	// message must be delivered ahead of later messages.
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

// findOwnClaims returns the messages of found that we have claimed, after the answer to
// the creation of the claims was lost.
func (v *queueView) findOwnClaims(ctx context.Context, found []*claim) ([]*claim, error) {
	// A deposed leader would not show a claim that its successor has committed. Behind a
	// commit, a claim that does not exist now will never exist.
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

// isOwnClaim reports whether this value has created a claim under this session. Other
// values may consume under the same session.
func (v *queueView) isOwnClaim(r session.ReadResult) bool {
	return r.Stat.EphemeralOwner == v.s.ID() && bytes.Equal(r.Data, v.c.id)
}

// holdClaims counts as many of n claims as the session has room for, and returns their
// number. From then on the lease of the session protects the claims.
func (v *queueView) holdClaims(n int) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	// A value without a claim may always have one. Otherwise the other values of the
	// session could keep it from its messages forever.
	least := 0
	if v.held == v.takes {
		least = 1
	}
	if n = v.load.reserve(n, v.claimBytes, least); n > 0 {
		v.holdLocked(n, 0)
	}
	return n
}

// holdLocked counts claims, and adds bytes to the session's load; v.mu is held.
func (v *queueView) holdLocked(n, bytes int) {
	v.load.adjust(bytes)
	// The lease begins before the claims are created: the loss of the session must be
	// noticed from the first moment at which a claim may exist.
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

// unsettledCount returns the number of our claims.
func (v *queueView) unsettledCount() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.held - v.takes
}

// holdTake protects a message that a Take is about to remove, as holdClaims protects
// claims, until releaseTake. A connection that is silent is then given up early.
func (v *queueView) holdTake() {
	v.mu.Lock()
	defer v.mu.Unlock()
	// takes and held change under one lock: a Take in between would look to
	// unsettledCount like a claim that was settled, and make room for one claim too many.
	v.takes++
	v.holdLocked(1, v.claimBytes)
}

// releaseTake ends the protection of holdTake.
func (v *queueView) releaseTake() {
	// takes goes down before held: in between, unsettledCount is too large and not too
	// small.
	v.mu.Lock()
	v.takes--
	v.mu.Unlock()
	v.releaseHeld(1)
}

// confirmLease waits until the lease guarantees that this consumer learns of the loss of
// its claims before another consumer can claim the messages.
func (v *queueView) confirmLease(ctx context.Context) error {
	v.mu.Lock()
	lease := v.lease
	v.mu.Unlock()
	if lease == nil {
		return fmt.Errorf("%w: all claims are gone", ErrLost)
	}
	return znode.Grant(ctx, lease)
}

// removeTx returns the transaction that deletes a claimed message and its claim. It fails
// if another client has deleted the claim.
func (cl *claim) removeTx() commit.Tx {
	item, name := cl.view.path(cl.messageRef), cl.view.claimPath(cl.messageRef)
	return commit.Tx{
		Ops:  []any{&zk.DeleteRequest{Path: item, Version: -1}, &zk.DeleteRequest{Path: name, Version: -1}},
		Size: len(item) + len(name) + 40,
	}
}

// releaseTx returns the transaction that deletes a claim and keeps the message.
func (cl *claim) releaseTx() commit.Tx {
	name := cl.view.claimPath(cl.messageRef)
	return commit.Tx{Ops: []any{&zk.DeleteRequest{Path: name, Version: -1}}, Size: len(name) + 20}
}
