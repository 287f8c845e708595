package simulation_test

import (
	"context"
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/go-zksync/toolkit/zksync"
)

// The events of a gate. turned: the gate was opened or closed, as the servers report. seen: a call
// returned because the gate had the state that the caller waits for, and the gate had this state at
// some time during the call.
type (
	turned struct{ open bool }
	seen   struct{ open bool }
)

// gate returns the model of a Barrier.
func gate() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return true },
		Step: func(state, input, _ any) (bool, any) {
			open := state.(bool)
			switch op := input.(type) {
			case turned:
				return true, op.open
			case seen:
				return open == op.open, open
			}
			return false, open
		},
		DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%T%v", input, input) },
	}
}

var gates = &workload{
	name:    "barrier",
	mishaps: []faultKind{limp, limpAll},
	start: func(w *world) func(*simClient, action) error {
		const path = "/gates/g"
		h := w.object("barrier", gate())
		w.onChange(path, func(closed bool) {
			h.note(len(w.plan.clients)+1, turned{!closed}, h.clock.Add(1), h.clock.Add(1))
		})
		value := make([]*zksync.Barrier, len(w.plan.clients))
		for i := range value {
			value[i] = zksync.NewBarrier(w.managers[i%w.plan.managers], path)
		}
		// No caller waits for ever: a helper opens the gate repeatedly, and in the end.
		w.helper(func(ctx context.Context, c *simClient) {
			for ctx.Err() == nil {
				time.Sleep(w.plan.timeout() / 2)
				_ = c.turn(ctx, h, "open", true, value[0].Remove)
			}
		})
		return func(c *simClient, a action) error {
			ctx, cancel := c.context(a)
			defer cancel()
			b := value[c.number]
			switch {
			case a.kind < 20:
				return c.turn(ctx, h, "close", false, b.Set)
			case a.kind < 35:
				return c.turn(ctx, h, "open", true, b.Remove)
			case a.kind < 60:
				return c.turn(ctx, h, "wait", true, b.Wait)
			}
			// Other clients learn that the gate is closed, or open, and continue from there.
			if err := c.turn(ctx, h, "close", false, b.Set); err != nil || ctx.Err() != nil {
				return err
			}
			if a.kind < 70 {
				if err := c.turn(ctx, h, "open", true, b.Remove); err != nil || ctx.Err() != nil {
					return err
				}
			}
			friend := value[(c.number+a.units)%len(value)]
			return c.turn(ctx, h, "let a friend wait", true, friend.Wait)
		}
	},
}

// turn makes a call after which, if it succeeds, the gate has been open, or closed.
func (c *simClient) turn(ctx context.Context, h *history, what string, open bool, do func(context.Context) error) error {
	called := h.clock.Add(1)
	err := do(ctx)
	returned := h.clock.Add(1)
	c.w.say("client %d: %s: %v", c.number, what, err)
	if err == nil {
		h.note(c.number, seen{open}, called, returned)
	}
	if ctx.Err() != nil && gaveUp(err) {
		return nil
	}
	return err
}
