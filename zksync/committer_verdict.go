package zksync

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zksync/toolkit/session"
)

// maxRepairs is how often a batch is tried again, without anything being settled,
// because something that it needs had to be made first.
const maxRepairs = 16

// repaired counts, and ends the first n entries where it goes on for too long.
func (c *committer) repaired(b *batch, err error) error {
	if b.repairs++; b.repairs > maxRepairs {
		c.settled(b, b.n, fmt.Errorf("gave up after making what is missing %d times: %w", maxRepairs, err))
	}
	return nil
}

// halve deals with a request that is too large to be sent.
func (c *committer) halve(b *batch, err error) error {
	if b.n <= 1 {
		c.settled(b, b.n, err)
		return nil
	}
	b.n /= 2
	return nil
}

// refused deals with the entry at i, for which the server has refused the
// request. Nothing has happened.
func (c *committer) refused(ctx context.Context, s *session.Session, b *batch, e *entry, i int, err error) error {
	var repair func(context.Context, *session.Session) error
	switch class := session.ClassOf(err); {
	case class == session.ClassNoNode && e.dir != "":
		repair = func(ctx context.Context, s *session.Session) error { return c.makeDir(ctx, s, e.dir) }
	case class == session.ClassNodeExists && e.dir != "":
		repair = func(ctx context.Context, s *session.Session) error { return c.renew(ctx, s, e.dir) }
	}
	if repair != nil {
		failed := repair(ctx, s)
		switch {
		case failed == nil:
			return c.repaired(b, err)
		case ctx.Err() != nil || session.ClassOf(failed).Again():
			return failed
		}
		err = failed
	}
	c.mu.Lock()
	gone := e.over
	c.mu.Unlock()
	switch {
	case gone:
	case b.entries[0] == e:
		// What fails before anything else in the transaction fails by itself.
		c.settled(b, 1, err)
	default:
		b.n = min(i, len(b.entries)) // those before it go first
	}
	return nil
}

// markerRefused deals with a request for which the marker was not as expected.
func (c *committer) markerRefused(ctx context.Context, s *session.Session, b *batch, err error) error {
	class := session.ClassOf(err)
	switch {
	case b.open && class == session.ClassBadVersion:
		v, err := c.marker.look(ctx, s)
		return c.decide(b, v, err)
	case b.open:
		return c.decide(b, 0, unknown(err))
	}
	c.unsend(b)
	if class != session.ClassNoNode && class != session.ClassBadVersion {
		c.settled(b, b.n, err)
		return nil
	}
	// Somebody has removed or changed it. There will be another one.
	c.marker.forget()
	return c.repaired(b, err)
}

// fence makes sure that what was sent, if it has not happened by now, never
// happens.
func (c *committer) fence(ctx context.Context, s *session.Session, b *batch) error {
	v, err := c.marker.fence(ctx, s)
	return c.decide(b, v, err)
}

// decide acts on a verdict about the first n entries of a batch.
func (c *committer) decide(b *batch, v verdict, err error) error {
	switch {
	case isUnknown(err):
		c.marker.forget()
		c.settled(b, b.n, err)
		return nil
	case err != nil:
		return err
	case v == happened:
		c.gate.passed(b.n)
		c.settled(b, b.n, nil)
	default:
		c.mu.Lock()
		for _, e := range b.entries[:b.n] {
			e.tried = true
		}
		c.mu.Unlock()
		c.unsend(b)
	}
	return nil
}

// resolve finds out what came of a batch that cannot be repeated, because of why.
func (c *committer) resolve(b *batch, why error) {
	err := c.m.Do(c.life, func(ctx context.Context, s *session.Session) error { return c.fence(ctx, s, b) })
	if err != nil {
		c.marker.forget()
		c.settled(b, b.n, unknown(errors.Join(why, err)))
	}
}
