package commit

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zksync/toolkit/session"
)

// maxRepairs is the number of repairs of a batch without an outcome. A repair creates a
// znode that the request needs.
const maxRepairs = 16

// repaired counts a repair, and ends the first n entries after too many of them.
func (b *batch) repaired(err error) {
	if b.repairs++; b.repairs > maxRepairs {
		b.finish(b.n, fmt.Errorf("gave up after %d repairs: %w", maxRepairs, err))
	}
}

// halve handles a request that is too large to be sent.
func (b *batch) halve(err error) {
	if b.n <= 1 {
		b.finish(b.n, err)
		return
	}
	b.n /= 2
}

// entryRefused handles a request that was refused because of the entry at i. Nothing
// has happened.
func (b *batch) entryRefused(ctx context.Context, s *session.Session, e *Entry, i int, err error) error {
	c := b.c
	var repair func(context.Context, *session.Session, string) error
	switch class := session.ClassOf(err); {
	case class == session.ClassNoNode && e.Dir != "":
		repair = c.MakeDir
	case class == session.ClassNodeExists && e.Dir != "" && c.NumberOf != nil:
		repair = c.freeNumber
	}
	if repair != nil {
		failed := repair(ctx, s, e.Dir)
		switch {
		case failed == nil:
			b.repaired(err)
			return nil
		case ctx.Err() != nil || session.ClassOf(failed).Again():
			return failed
		}
		err = failed
	}
	c.mu.Lock()
	gone := e.finished
	c.mu.Unlock()
	switch {
	case gone:
	case b.entries[0] == e:
		// No operation precedes it in the transaction, so it fails by itself.
		b.finish(1, err)
	default:
		b.n = min(i, len(b.entries)) // the entries before it go first
	}
	return nil
}

// markerRefused handles a request that found another version of the marker.
func (b *batch) markerRefused(ctx context.Context, s *session.Session, err error) error {
	class := session.ClassOf(err)
	switch {
	case b.open && class == session.ClassBadVersion:
		o, err := b.c.marker.readOutcome(ctx, s)
		return b.decide(o, err)
	case b.open:
		return b.decide(0, unknown(err))
	}
	b.markUnsent()
	if class != session.ClassNoNode && class != session.ClassBadVersion {
		b.finish(b.n, err)
		return nil
	}
	// Another client has deleted or changed the marker. The next request creates another.
	b.c.marker.retire()
	b.repaired(err)
	return nil
}

// fence makes sure that the last request, if it has not happened by now, never happens.
func (b *batch) fence(ctx context.Context, s *session.Session) error {
	o, err := b.c.marker.fence(ctx, s)
	return b.decide(o, err)
}

// decide acts on the outcome of the first n entries.
func (b *batch) decide(o outcome, err error) error {
	switch {
	case IsUnknown(err):
		b.c.marker.retire()
		b.finish(b.n, err)
		return nil
	case err != nil:
		return err
	case o == happened:
		b.c.Gate.Passed(b.n)
		b.finish(b.n, nil)
	default:
		b.c.mu.Lock()
		for _, e := range b.entries[:b.n] {
			e.tried = true
		}
		b.c.mu.Unlock()
		b.markUnsent()
	}
	return nil
}

// resolve finds out the outcome of a request that cannot be repeated because of why.
func (b *batch) resolve(why error) {
	if err := b.c.m.Do(b.c.life, b.fence); err != nil {
		b.c.marker.retire()
		b.finish(b.n, unknown(errors.Join(why, err)))
	}
}
