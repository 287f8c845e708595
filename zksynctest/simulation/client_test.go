package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// A simClient is one goroutine that uses one of the managers.
type simClient struct {
	w       *world
	number  int
	manager int
	m       *session.Manager
	at      int // index of its current action

	// Guarded by the world's mutex:
	waits    context.Context // the last context of its action,
	cancel   context.CancelFunc
	gaveUpAt time.Time // and the time at which a fault ended that context
}

// run carries out a client's actions in order.
func (c *simClient) run(ctx context.Context, actions []action, do func(*simClient, action) error) {
	for i, a := range actions {
		c.at = i
		time.Sleep(a.pause)
		c.wake()
		if ctx.Err() != nil {
			return
		}
		if err := do(c, a); err != nil && !c.w.refused(err) {
			c.w.fail("client %d, action %d (%v): %v", c.number, i, a, err)
		} else {
			c.w.mu.Lock()
			c.w.progress++
			c.w.mu.Unlock()
		}
	}
}

// errSibling marks the causes with which contexts end. A cause may wrap any error, for example when
// a sibling in an errgroup has failed.
var errSibling = errors.New("a sibling has failed")

// causes has errors to which calls react if the errors come from a server or a session.
var causes = []error{nil, zksync.ErrLost, zk.ErrNoNode, zk.ErrNodeExists, zksync.ErrIDTaken}

// context returns a new context for an action.
func (c *simClient) context(a action) (context.Context, context.CancelFunc) {
	cause := causes[a.kind%len(causes)]
	if cause != nil {
		cause = fmt.Errorf("%w: %w", errSibling, cause)
	}
	ctx, end := context.WithCancelCause(context.Background())
	cancel := func() { end(cause) }
	if a.patience > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, a.patience, cause)
		cancel = func() { end(cause); stop() }
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.waits, c.cancel, c.gaveUpAt = ctx, cancel, time.Time{}
	return ctx, cancel
}

// suspend stops a Manager's process: its frames stop in both directions, and its clients stop
// before their next action.
func (w *world) suspend(manager int, d time.Duration) {
	w.net.Hold(manager, d)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asleep[manager] = time.Now().Add(d)
}

// wake waits for the end of a suspension.
func (c *simClient) wake() {
	c.w.mu.Lock()
	until := c.w.asleep[c.manager]
	c.w.mu.Unlock()
	time.Sleep(time.Until(until))
}

// lossOf reports whether the context of a hold has ended because the hold is lost, and not because
// the caller's context has ended.
func lossOf(held context.Context) bool {
	cause := context.Cause(held)
	return errors.Is(cause, zksync.ErrLost) && !errors.Is(cause, errSibling)
}

// giveUp cancels the contexts of the calls in which clients wait.
func (w *world) giveUp(clients []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range clients {
		if c := w.clients[i]; c.waits != nil && c.waits.Err() == nil {
			c.gaveUpAt = time.Now()
			c.cancel()
		}
	}
}

// gaveUp reports whether an error is a cancellation or a timeout of a wait.
func gaveUp(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
