package enumeration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/simulation/network"
)

// suspend stops the client's process: its frames stop in both directions, and its application does
// nothing.
func suspend(d time.Duration) func(*stage, network.Frame) {
	return func(s *stage, f network.Frame) {
		s.net.Hold(f.Client, d)
		s.clients[f.Client].suspend(d)
	}
}

// Every cause of a cancelled context wraps errSibling.
var errSibling = errors.New("a sibling has failed")

// cancelWith ends the contexts of the client's calls with a cause that wraps err. Such causes are
// common: after a goroutine of an errgroup has failed, its error is the cause for its siblings.
func cancelWith(err error) func(*stage, network.Frame) {
	cause := fmt.Errorf("%w: %w", errSibling, err)
	return func(s *stage, f network.Frame) {
		if !s.clients[f.Client].cancel(cause) {
			s.void("no call to cancel")
		}
	}
}

// close closes the client's Manager.
func (s *stage) close(f network.Frame) {
	c := s.clients[f.Client]
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil || c.closing {
		s.void("no Manager to close")
		return
	}
	c.closing = true
	m := c.m
	s.background.start(func() { m.Close() })
}

// kill ends the client as if its process were killed: no server hears of its Manager again.
func (s *stage) kill(f network.Frame) {
	s.net.Partition(f.Client, 2*timeout)
	s.heal(2*timeout, func() {})
	s.close(f)
}

// context returns a context for calls of the client. The faults cancel-* end it.
func (c *client) context() context.Context {
	ctx, cancel := context.WithCancelCause(c.stage.ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given = append(slices.DeleteFunc(c.given, func(g given) bool { return g.ctx.Err() != nil }), given{ctx, cancel})
	return ctx
}

// cancel ends all contexts of the client's calls, and reports whether there were any.
func (c *client) cancel(cause error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	some := false
	for _, g := range c.given {
		if g.ctx.Err() == nil {
			some = true
			g.cancel(cause)
		}
	}
	c.given = nil
	c.cancelled = time.Now()
	return some
}
