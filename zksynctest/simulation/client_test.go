package simulation_test

import (
	"context"
	"errors"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// A simClient is one goroutine that uses one of the managers.
type simClient struct {
	w       *world
	number  int
	manager int
	m       *session.Manager
	at      int // its action

	// Guarded by the world's mutex:
	waits    context.Context // what its action was given last,
	cancel   context.CancelFunc
	gaveUpAt time.Time // and when a fault has ended that
}

// run does what a client has to.
func (c *simClient) run(ctx context.Context, actions []action, do func(*simClient, action) error) {
	for i, a := range actions {
		c.at = i
		time.Sleep(a.pause)
		if ctx.Err() != nil {
			return
		}
		if err := do(c, a); err != nil {
			c.w.fail("client %d, action %d (%v): %v", c.number, i, a, err)
		} else {
			c.w.mu.Lock()
			c.w.progress++
			c.w.mu.Unlock()
		}
	}
}

// context is what an action is given.
func (c *simClient) context(a action) (context.Context, context.CancelFunc) {
	ctx, cancel := context.Background(), context.CancelFunc(nil)
	if a.patience > 0 {
		ctx, cancel = context.WithTimeout(ctx, a.patience)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.waits, c.cancel, c.gaveUpAt = ctx, cancel, time.Time{}
	return ctx, cancel
}

// giveUp ends what clients wait for, if it may end.
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

// gaveUp says whether an error is that of a wait that has taken too long.
func gaveUp(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
