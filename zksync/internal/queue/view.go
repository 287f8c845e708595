package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// A view is the knowledge of one consumer about a queue, through one session: the messages
// that wait, and the state of the order znode. All goroutines of a consumer share it. It lists
// a directory again only if a watch reports a change and the directory matters for the
// next message: while messages of the last listing are left, nothing is listed.
type view struct {
	cfg        *Config
	life       *lifetime // of the consumer
	skips      *skipCount
	s          *session.Session
	changed    broadcast     // wakes the goroutines that wait for a message
	refreshing chan struct{} // held by the goroutine that asks the servers
	watching   chan struct{} // held by the Take that changed wakes
	nextLook   time.Time     // no look for deleted directories before; guarded by refreshing
	order      orderZnode
	partitions partitionList
	claims     claimCount
	unsettled  sync.Map     // the deliveries that were received, and that no call settles
	inLine     atomic.Int32 // the number of contenders of this consumer in the line

	failedLedger <-chan error // closed when no ledger of a failed attempt exists, or can be removed; nil if there was none; guarded by Consumer.opening
}

// newView returns a view through a session. onRelease is called when there is room for another claim.
func newView(cfg *Config, life *lifetime, skips *skipCount, s *session.Session, onRelease func()) *view {
	v := &view{cfg: cfg, life: life, skips: skips, s: s, refreshing: make(chan struct{}, 1), watching: make(chan struct{}, 1), claims: claimCount{s: s, onRelease: onRelease}}
	v.order.cfg, v.order.s, v.order.dir, v.order.changed = cfg, s, cfg.child(claimsName), &v.changed
	v.partitions.cfg, v.partitions.order, v.partitions.changed = cfg, &v.order, &v.changed
	if cfg.Kind.ParsePartition == nil {
		v.partitions.all = []*partition{newPartition(cfg, "", 0)}
	}
	return v
}

// stop stops all watches.
func (v *view) stop() {
	v.order.stop()
	v.partitions.mu.Lock()
	defer v.partitions.mu.Unlock()
	for _, p := range v.partitions.all {
		p.stop()
	}
	v.partitions.listing.stopWatch()
}

// invalidate commits a transaction without effect, and forgets everything that was read.
// The watches stay until the directories are listed again.
func (v *view) invalidate(ctx context.Context) error {
	// Behind a commit, the listings have every message whose Put has returned by now. A
	// server that lags, or a deposed leader, might not show it, and sends no event.
	if err := v.s.SyncQuorum(ctx, v.cfg.Path); err != nil {
		return err
	}
	// The other waiting goroutines must look again, too: the new listings may have more
	// messages than this goroutine takes, and no watch fires for them. Notify even if
	// this goroutine fails before it takes a message.
	defer v.changed.notify()
	v.order.forget(v.order.known())
	v.partitions.mu.Lock()
	defer v.partitions.mu.Unlock()
	v.partitions.listing.markStale()
	for _, p := range v.partitions.all {
		p.listing.markStale()
	}
	return nil
}
