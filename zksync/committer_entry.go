package zksync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// A tx is what is to happen as a whole or not at all, together with others or
// alone.
type tx struct {
	ops  []any  // as for session.Multi
	size int    // in bytes, roughly
	dir  string // where it creates a sequential znode, which is made where it is not there; may be empty
	// read is what committer.marked was before that was read on which the tx relies;
	// untold if it relies on nothing. Then it ends with errStale where there is another
	// marker by now: a directory stays while there is something in it, and so does the
	// meaning of the names in it.
	read   asOf
	readAt time.Time // when that was read; after maxReadAge, too, the tx ends with errStale
}

type asOf int64

const untold asOf = 0

// maxReadAge is how old may be what a tx relies on when it is sent. In a longer time a
// directory may be emptied, deleted and created again.
const maxReadAge = 10 * time.Second

// errStale is the end of an entry that relies on what was read before there was this
// marker. It stays within the package.
var errStale = errors.New("zksync: what was read may have been of another directory of that name")

// now is what committer.marked is.
func (c *committer) now() asOf {
	if n := c.marked.Load(); n > 0 {
		return asOf(n)
	}
	return -1
}

// An entry is a tx on its way. Its fields but for the first ones are c.mu's.
type entry struct {
	tx
	c     *committer
	on    *session.Session
	chain *chain
	done  chan struct{}
	err   error // valid once done is closed; see wait

	over    bool
	sent    bool   // it may have happened
	tried   bool   // it was sent, and stopped by a fence
	leaving error  // why its caller has gone, if so
	batch   *batch // that it is part of
}

// A chain is a number of entries of which none happens unless those before it
// have.
type chain struct{ broken bool }

// wait returns nil if the entry has happened, exactly once. With an error that is
// ErrOutcomeUnknown it may have, with any other it has not, and never will. When
// ctx ends an entry that was not sent yet is withdrawn; of one that was sent wait
// may be called again, to learn what came of it.
func (e *entry) wait(ctx context.Context) error {
	select {
	case <-e.done:
		return e.err
	case <-ctx.Done():
		return e.c.leave(e.c.cancelled(ctx), e)[0]
	}
}

// cancelled is the error of a caller whose ctx has ended, with what its entry waits
// for.
func (c *committer) cancelled(ctx context.Context) error {
	if reason := c.gate.waiting(); reason != nil && c.m.State() == session.Connected {
		return session.CancelledWaiting(ctx, fmt.Errorf("waiting %w", reason))
	}
	return c.m.Cancelled(ctx)
}

// leave takes the callers of entries away, all at once, and returns what they may
// say of them.
func (c *committer) leave(why error, entries ...*entry) []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := make([]error, len(entries))
	for i, e := range entries {
		if !e.over && !e.sent {
			c.finishLocked(e, why)
		}
		if e.over {
			errs[i] = e.err
			continue
		}
		e.leaving = why
		errs[i] = unknown(why)
		e.batch.desertLocked()
	}
	return errs
}

// finishLocked settles an entry; c.mu is held.
func (c *committer) finishLocked(e *entry, err error) {
	if e.endLocked(err) {
		close(e.done)
		e.batch.desertLocked()
	}
}

// endLocked notes what came of an entry, whose done is then to be closed; c.mu is
// held. It reports false if that was noted before.
func (e *entry) endLocked(err error) bool {
	if e.over {
		return false
	}
	e.over, e.err = true, err
	if err != nil && e.chain != nil {
		e.chain.broken = true
	}
	return true
}

// unknown returns an error that says that a request may or may not have been carried
// out, and why that is not known.
func unknown(why error) error { return &unknownError{why} }

// isUnknown reports whether err was made by unknown. It does not look into err: a
// caller's ctx may have an ErrOutcomeUnknown for its cause.
func isUnknown(err error) bool {
	_, ok := err.(*unknownError)
	return ok
}

type unknownError struct{ why error }

func (e *unknownError) Error() string   { return fmt.Sprintf("%v: %v", ErrOutcomeUnknown, e.why) }
func (e *unknownError) Unwrap() []error { return []error{ErrOutcomeUnknown, e.why} }
