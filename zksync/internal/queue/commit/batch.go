package commit

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A batch is a list of entries that are sent together. The run of the Committer uses
// it; its entries are guarded by c.mu.
type batch struct {
	c       *Committer
	entries []*Entry // that have no outcome, in order
	n       int      // the number of entries, from the first on, that go into the next request
	on      *session.Session
	open    bool // the first n entries were sent, and their outcome is unknown
	repairs int  // since an entry got its outcome

	ctx    context.Context // ends when no caller is left
	cancel context.CancelCauseFunc
}

var (
	// errNoCallers is the cause of the end of a batch's context.
	errNoCallers = errors.New("zksync: no caller waits")
	// errOtherSession says that a batch is bound to a session that has ended.
	errOtherSession = errors.New("zksync: the session of the transaction has ended")
)

// cancelIfDesertedLocked cancels the batch if every caller has gone; c.mu is held.
func (b *batch) cancelIfDesertedLocked() {
	if b == nil || slices.ContainsFunc(b.entries, func(e *Entry) bool { return !e.finished && e.deserted == nil }) {
		return
	}
	b.cancel(errNoCallers)
}

// carryOut sends requests until every entry has an outcome.
func (b *batch) carryOut() {
	defer b.cancel(nil)
	for len(b.entries) > 0 {
		err := b.c.m.Do(b.ctx, b.send)
		if err != nil && b.open {
			b.resolve(err)
		}
		switch {
		case err == nil || b.open || len(b.entries) == 0:
		case err == errOtherSession:
			b.finish(len(b.entries), znode.LossOf(b.on.Err()))
		case context.Cause(b.ctx) == errNoCallers:
			b.markUnsent()
		default:
			b.finish(b.n, err)
		}
	}
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.c.current = nil
}

// finish sets the outcome of the first n entries.
func (b *batch) finish(n int, err error) {
	finished := b.removeFirst(n, err)
	// c.mu is not held: callers that wake up ask for it at once.
	for _, e := range finished {
		close(e.done)
	}
}

// removeFirst removes the first n entries from the batch, and returns the entries among
// them whose done the caller must close.
func (b *batch) removeFirst(n int, err error) []*Entry {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	finished := b.entries[:0:n]
	for _, e := range b.entries[:n] {
		if e.setLocked(err) {
			finished = append(finished, e)
		}
	}
	b.entries = b.entries[n:]
	b.n, b.open, b.repairs = len(b.entries), false, 0
	b.cancelIfDesertedLocked()
	return finished
}

// dropLocked removes the entries that must not be sent any more. If none of the first n
// entries is left, all remaining entries go into the next request; c.mu is held.
func (b *batch) dropLocked() {
	var kept []*Entry
	n := 0
	for i, e := range b.entries {
		if e.chain != nil && e.chain.broken {
			b.c.finishLocked(e, errSkipped)
		}
		if e.Epoch != noEpoch && (e.Epoch != b.c.Epoch() || e.tried || time.Since(e.ReadAt) > maxReadAge) {
			b.c.finishLocked(e, ErrStale)
		}
		if e.finished {
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

// markSent returns the entries that go into the next request.
func (b *batch) markSent(room int) []*Entry {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	if !b.open { // an open request is repeated as it was
		b.dropLocked()
		b.n = min(b.n, room)
	}
	for _, e := range b.entries[:b.n] {
		e.sent = true
	}
	return b.entries[:b.n]
}

// markUnsent notes that the last request has not happened, and never will.
func (b *batch) markUnsent() {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.open = false
	for _, e := range b.entries {
		if e.sent = false; e.deserted != nil {
			b.c.finishLocked(e, e.deserted)
		}
	}
	b.dropLocked()
}

// send sends the next request. It returns nil if the batch has made progress, and
// otherwise an error for Manager.Do.
func (b *batch) send(ctx context.Context, s *session.Session) error {
	c := b.c
	if b.on != nil && b.on != s {
		return errOtherSession
	}
	if !b.open {
		if err := c.marker.ensure(ctx, s); err != nil {
			return err
		}
		c.epoch.Store(c.marker.number)
	}
	if b.open && slices.ContainsFunc(b.entries[:b.n], func(e *Entry) bool { return e.Epoch != noEpoch }) {
		// Meanwhile another client may have taken the message, and another message may
		// have its name in a directory that was created again. So the caller must read
		// again.
		return b.fence(ctx, s)
	}
	first, room, err := c.Gate.Admit(ctx, s, b.n)
	if err != nil {
		return err
	}
	entries := b.markSent(room)
	if len(entries) == 0 {
		return nil
	}
	ops := append(make([]any, 0, 1+len(first)+len(entries)*len(entries[0].Ops)), c.marker.bump())
	ops = append(ops, first...)
	for _, e := range entries {
		ops = append(ops, e.Ops...)
	}
	// A request that was sent is not cancelled with its callers: its answer is the
	// shortest way to its outcome.
	results, err := s.Multi(c.life, ops...)
	at := slices.IndexFunc(results, func(r zk.MultiResponse) bool { return r.Error != nil })
	switch {
	case err == nil:
		c.marker.version++
		c.Gate.Passed(len(entries))
		b.finish(len(entries), nil)
		return nil
	case session.ClassOf(err) == session.ClassTooLarge && !b.open:
		b.markUnsent()
		b.halve(err)
		return nil
	case at < 0:
		b.open = true
		return err
	case at == 0:
		return b.markerRefused(ctx, s, err)
	case b.open:
		// The marker had the expected version, so the earlier requests have not
		// happened. But one of them may still be on its way under an earlier session.
		return b.fence(ctx, s)
	}
	b.markUnsent()
	if at--; at < len(first) {
		return c.Gate.Refused(err)
	}
	at -= len(first)
	for i, e := range entries {
		if at -= len(e.Ops); at < 0 {
			return b.entryRefused(ctx, s, e, i, err)
		}
	}
	return err
}
