package zksync

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A batch is a number of entries on their way together. It is the runner's but
// for what the entries' callers may ask of it.
type batch struct {
	entries []*entry // that are not settled, in order; changed under c.mu
	n       int      // how many of them go into the next request
	on      *session.Session
	open    bool // the first n were sent, and may have happened or happen yet
	repairs int  // since something was settled last

	ctx    context.Context // ends when no caller is left
	cancel context.CancelCauseFunc
}

var (
	// errDeserted is the end of a batch's context: all callers have gone.
	errDeserted = errors.New("zksync: nobody waits for it any more")
	// errOtherSession says that the session is over to which a batch is bound.
	errOtherSession = errors.New("zksync: bound to a session that is over")
)

// desertLocked notes that a caller has gone; c.mu is held.
func (b *batch) desertLocked() {
	if b == nil || slices.ContainsFunc(b.entries, func(e *entry) bool { return !e.over && e.leaving == nil }) {
		return
	}
	b.cancel(errDeserted)
}

// settle carries out a batch, in as many requests as it takes.
func (c *committer) settle(b *batch) {
	defer b.cancel(nil)
	for len(b.entries) > 0 {
		err := c.m.Do(b.ctx, func(ctx context.Context, s *session.Session) error { return c.try(ctx, s, b) })
		if err != nil && b.open {
			c.resolve(b, err)
		}
		switch {
		case err == nil || b.open || len(b.entries) == 0:
		case err == errOtherSession:
			c.settled(b, len(b.entries), znode.LossOf(b.on.Err()))
		case context.Cause(b.ctx) == errDeserted:
			c.unsend(b)
		default:
			c.settled(b, b.n, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = nil
}

// settled ends the first n entries of a batch.
func (c *committer) settled(b *batch, n int, err error) {
	over := c.takeSettled(b, n, err)
	// Those who wait go for c.mu as soon as they run.
	for _, e := range over {
		close(e.done)
	}
}

// takeSettled takes the first n entries out of a batch, and returns those of them
// whose callers are still to be told.
func (c *committer) takeSettled(b *batch, n int, err error) []*entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	over := b.entries[:0:n]
	for _, e := range b.entries[:n] {
		if e.endLocked(err) {
			over = append(over, e)
		}
	}
	b.entries = b.entries[n:]
	b.n, b.open, b.repairs = len(b.entries), false, 0
	b.desertLocked()
	return over
}

// dropLocked takes those entries out of a batch that nobody wants any more, and
// goes on with all that are left if none of the first n are; c.mu is held.
func (c *committer) dropLocked(b *batch) {
	var kept []*entry
	n := 0
	for i, e := range b.entries {
		if e.chain != nil && e.chain.broken {
			c.finishLocked(e, errSkipped)
		}
		if e.read != untold && (e.read != c.now() || e.tried || time.Since(e.readAt) > maxReadAge) {
			c.finishLocked(e, errStale)
		}
		if e.over {
			continue
		}
		if kept = append(kept, e); i < b.n {
			n++
		}
	}
	if n == 0 {
		n = len(kept)
	}
	b.entries, b.n = kept, n
}

// send says which entries go into the request that comes next.
func (c *committer) send(b *batch, room int) []*entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !b.open { // otherwise the request is to be that which was sent before
		c.dropLocked(b)
		b.n = min(b.n, room)
	}
	for _, e := range b.entries[:b.n] {
		e.sent = true
	}
	return b.entries[:b.n]
}

// unsend notes that what was sent has not happened, and never will.
func (c *committer) unsend(b *batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.open = false
	for _, e := range b.entries {
		if e.sent = false; e.leaving != nil {
			c.finishLocked(e, e.leaving)
		}
	}
	c.dropLocked(b)
}

// try sends the next request of a batch. It returns nil if something has come of
// that, and otherwise an error for Manager.Do to look at.
func (c *committer) try(ctx context.Context, s *session.Session, b *batch) error {
	if b.on != nil && b.on != s {
		return errOtherSession
	}
	if !b.open {
		if err := c.marker.ensure(ctx, s); err != nil {
			return err
		}
		c.marked.Store(c.marker.number)
	}
	if b.open && slices.ContainsFunc(b.entries[:b.n], func(e *entry) bool { return e.read != untold }) {
		// Meanwhile another may have taken the message, and another message may have its
		// name in a directory that was created again. So it is to be read again.
		return c.fence(ctx, s, b)
	}
	first, room, err := c.gate.admit(ctx, s, b.n)
	if err != nil {
		return err
	}
	entries := c.send(b, room)
	if len(entries) == 0 {
		return nil
	}
	ops := append(make([]any, 0, 1+len(first)+len(entries)*len(entries[0].ops)), c.marker.bump())
	ops = append(ops, first...)
	for _, e := range entries {
		ops = append(ops, e.ops...)
	}
	// A request that was sent is not given up with its callers: its answer is the
	// shortest way to what came of it.
	results, err := s.Multi(c.life, ops...)
	at := slices.IndexFunc(results, func(r zk.MultiResponse) bool { return r.Error != nil })
	switch {
	case err == nil:
		c.marker.version++
		c.gate.passed(len(entries))
		c.settled(b, len(entries), nil)
		return nil
	case session.ClassOf(err) == session.ClassTooLarge && !b.open:
		c.unsend(b)
		return c.halve(b, err)
	case at < 0:
		b.open = true
		return err
	case at == 0:
		return c.markerRefused(ctx, s, b, err)
	case b.open:
		// The marker was as it should be, so the earlier tries have not happened;
		// but one that is on its way from a former session still could.
		return c.fence(ctx, s, b)
	}
	c.unsend(b)
	if at--; at < len(first) {
		return c.gate.refused(err)
	}
	at -= len(first)
	for i, e := range entries {
		if at -= len(e.ops); at < 0 {
			return c.refused(ctx, s, b, e, i, err)
		}
	}
	return err
}
