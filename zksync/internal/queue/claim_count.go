package queue

import (
	"context"
	"sync"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A claimCount counts the claims of a view, and keeps a lease while there are any.
type claimCount struct {
	s         *session.Session
	onRelease func() // called when unsettled goes down

	mu       sync.Mutex
	held     int // claims
	removals int // claimed messages whose removal is queued
	lease    *session.Lease
}

// hold counts n claims in the ledger at path. From then on the lease of the session
// protects them, and gone is called once the session knows that the ledger is gone.
func (k *claimCount) hold(n int, path string, gone func()) {
	k.mu.Lock()
	// The lease begins before the claims are made: the loss of the session must be noticed
	// from the first moment at which a claim may exist.
	if k.held += n; k.lease == nil {
		k.lease = k.s.Lease()
	}
	lease := k.lease
	lease.Own(path)
	k.mu.Unlock()
	lease.NotifyGone(gone) // without the mutex, since gone ends removals
}

// release ends n claims.
func (k *claimCount) release(n int) {
	k.mu.Lock()
	if k.held -= n; k.held == 0 && k.lease != nil {
		k.lease.End()
		k.lease = nil
	}
	k.mu.Unlock()
	k.onRelease()
}

// end ends all claims: the ledger has gone.
func (k *claimCount) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	// Not removals: each of them still ends by endRemoval.
	k.held = 0
	if k.lease != nil {
		k.lease.End()
		k.lease = nil
	}
}

// beginRemoval notes that the removal of a claimed message is queued.
func (k *claimCount) beginRemoval() {
	k.mu.Lock()
	k.removals++
	k.mu.Unlock()
	k.onRelease()
}

// endRemoval notes that a removal has an outcome. Call release afterwards, unless the
// removal is repeated.
func (k *claimCount) endRemoval() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.removals--
}

// unsettled returns the number of claims that count for Config.Prefetch.
func (k *claimCount) unsettled() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	// A message whose removal is queued makes room already: the next claim goes into the same
	// transaction or into a later one, so that the ledger never has more names than the limit.
	return k.held - k.removals
}

// unsettledAfter returns the number of claims after some removals.
func (k *claimCount) unsettledAfter(removals int) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held - removals
}

// confirm waits until the lease guarantees that this consumer learns of the loss of its
// claims before another consumer can claim the messages.
func (k *claimCount) confirm(ctx context.Context) error {
	k.mu.Lock()
	lease := k.lease
	k.mu.Unlock()
	if lease == nil {
		return session.ErrLost
	}
	return znode.Grant(ctx, lease)
}
