package queue

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-zksync/toolkit/session"
)

// A Consumer takes messages out of a queue.
type Consumer struct {
	cfg Config
	*lifetime
	window   prefetchWindow
	removing removing
	skips    skipCount
	opening  chan struct{} // held by the goroutine that opens a ledger
	ledger   *ledger       // of the last session with claims; nil if this consumer claims nothing; guarded by opening
	full     atomic.Bool   // the receiver has as many messages as Config.Prefetch allows, and has settled none of them

	mu   sync.Mutex
	view *view
}

// NewConsumer returns a Consumer. It does no I/O.
func NewConsumer(cfg Config) *Consumer {
	cfg.maxOrderVersion = maxOrderVersion
	return &Consumer{cfg: cfg, lifetime: newLifetime(), window: prefetchWindow{limit: cfg.Prefetch}, opening: make(chan struct{}, 1)}
}

// Close gives back the messages that were not settled, waits for that until ctx ends, and
// returns when no goroutine of the Consumer runs any more.
func (c *Consumer) Close(ctx context.Context) {
	defer close(c.closed)
	c.beginClose()
	defer context.AfterFunc(ctx, func() { c.endCleanup(ErrClosed) })()
	c.wg.Wait()
	if c.view != nil { // without the mutex: no call is left that changes it
		c.endClaims(c.view)
		c.view.stop()
	}
	c.endCleanup(ErrClosed)
}

// endClaims deletes the ledger of a view, and gives back the messages in it. No call is
// under way.
func (c *Consumer) endClaims(v *view) {
	// Messages that were received and not settled have kept the lease until now.
	defer v.claims.end()
	l := c.ledger
	if l == nil || l.v != v || v.s.Err() != nil || l.usable.Err() == nil && l.close() == nil {
		return
	}
	// The messages are free when the janitor of the session has deleted the ledger, and
	// another consumer has found out.
	select {
	case <-v.s.Discard(l.path):
	case <-c.cleanupCtx.Done():
	}
}

// viewOf returns the view of the queue through a session.
func (c *Consumer) viewOf(s *session.Session) *view {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view != nil && c.view.s == s {
		return c.view
	}
	v := newView(&c.cfg, c.lifetime, &c.skips, s, c.window.changed.notify)
	// A caller with an old session must not replace the view of the next session, which other
	// goroutines use.
	if s.Err() == nil {
		if c.view != nil {
			c.view.stop()
		}
		c.view = v
	}
	return v
}

// Skipped returns how many messages this consumer has skipped, and the reason for the
// last skip.
func (c *Consumer) Skipped() (int, error) { return c.skips.get() }

// Unsettled returns an error if no message comes before the receiver has settled one, and nil otherwise.
func (c *Consumer) Unsettled() error {
	if !c.full.Load() {
		return nil
	}
	return fmt.Errorf("waiting %w", c.cfg.errUnsettled())
}

// errUnsettled is what a stream waits for whose receiver settles no message.
func (cfg *Config) errUnsettled() error {
	return fmt.Errorf("for Ack, Nack, Retry or MoveTo: %[1]d of %[1]d messages are not settled (see WithPrefetch)", cfg.Prefetch)
}

// ObserveLength tells the observer of the Manager how long the queue is.
func (c *Consumer) ObserveLength(n int) { c.cfg.observeLength(n) }

// openClaims returns the ledger of a view, which it opens if necessary. It deletes the ledger
// of the session before, whose messages are then free at once.
func (c *Consumer) openClaims(ctx context.Context, v *view) (*ledger, error) {
	// A Take and the channel may open the ledger at the same time. A second ledger would stay.
	select {
	case c.opening <- struct{}{}:
		defer func() { <-c.opening }()
	case <-ctx.Done():
		return nil, session.Cancelled(ctx)
	}
	order, err := v.order.open(ctx)
	if err != nil {
		return nil, err
	}
	old := c.ledger
	if old != nil && old.v == v && old.usable.Err() == nil {
		// It has the claims on the messages that were received and are not settled.
		return old, nil
	}
	if old != nil {
		// A request of the old session that arrives later fails, because it writes the
		// ledger. Without the permission to delete, the ledger stays until the server ends the
		// old session.
		err := v.s.Delete(ctx, old.path, -1)
		if class := session.ClassOf(err); err != nil && class != session.ClassNoNode && class != session.ClassNoAuth {
			return nil, err
		}
	}
	l, err := openLedger(ctx, v, order)
	if err != nil {
		return nil, err
	}
	c.ledger = l
	return l, nil
}
