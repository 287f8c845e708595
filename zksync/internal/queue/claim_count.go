package queue

import (
	"context"
	"sync"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A claimCount counts the claims of a view, and keeps a lease while there are any.
type claimCount struct {
	s *session.Session

	mu        sync.Mutex
	held      int // claims, and messages that Takes are removing
	takes     int
	lease     *session.Lease
	onRelease func() // called when held goes down
}

// hold counts n claims in the ledger at path. From then on the lease of the session
// protects them.
func (k *claimCount) hold(n int, path string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	// The lease begins before the claims are made: the loss of the session must be noticed
	// from the first moment at which a claim may exist.
	if k.held += n; k.lease == nil {
		k.lease = k.s.Lease()
	}
	if path == "" {
		k.takes += n
	} else {
		k.lease.Own(path)
	}
}

// release ends n claims, or Takes.
func (k *claimCount) release(n int, take bool) {
	k.mu.Lock()
	if take {
		k.takes -= n
	}
	if k.held -= n; k.held == 0 && k.lease != nil {
		k.lease.End()
		k.lease = nil
	}
	onRelease := k.onRelease
	k.mu.Unlock()
	if onRelease != nil && n > 0 {
		onRelease()
	}
}

// end ends all claims: the ledger has gone.
func (k *claimCount) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held, k.takes = 0, 0
	if k.lease != nil {
		k.lease.End()
		k.lease = nil
	}
}

func (k *claimCount) setOnRelease(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.onRelease = f
}

// unsettled returns the number of claims.
func (k *claimCount) unsettled() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held - k.takes
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
