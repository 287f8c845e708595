package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Target is the queue that MoveTo moves a message to.
type Target struct {
	Err         error // why the queue cannot be used; nil if it can
	Dir, Prefix string
	Gate        commit.Gate                            // nil if the queue has no limit
	Turn        chan struct{}                          // of one element, held by the MoveTo that uses the gate; nil without a gate
	Life        context.Context                        // ends when Close of the queue's value begins
	NumberOf    func(name string) (seq int32, ok bool) // returns the number in the name of a message
	MakeDir     func(ctx context.Context, s *session.Session, path string) error

	later bool // it is the directory of the messages of Retry
}

// MoveTo moves the message to another queue.
func (d *Delivery) MoveTo(ctx context.Context, to Target) error {
	if to.Gate != nil && d.ref.partition.dir == to.Dir {
		if _, counted := to.NumberOf(d.ref.Name); counted {
			to.Gate = nil // the message has its room already, and would wait for itself
		}
	}
	return d.settle(ctx, "MoveTo", to.Gate, inBackground(func() error {
		if to.Err != nil {
			return d.outcomeOf(to.Err, false)
		}
		return d.remove(&to)
	}))
}

// remove removes the message, and puts it into a target if to is not nil.
func (d *Delivery) remove(to *Target) error {
	waits, fail := d.v.life.ctx, d.outcomeOf
	if to != nil {
		// The waits in the target end when Close begins, of this value or of the value of the target, and
		// when the ledger is gone: other consumers may have the message then.
		var cancel context.CancelCauseFunc
		waits, cancel = context.WithCancelCause(waits)
		defer cancel(nil)
		defer context.AfterFunc(to.Life, func() { cancel(ErrClosed) })()
		defer context.AfterFunc(d.l.usable, func() { cancel(context.Cause(d.l.usable)) })()
		fail = func(err error, sent bool) error {
			if session.ClassOf(err) == session.ClassCancelled && d.v.life.ctx.Err() == nil && waits.Err() != nil {
				err = context.Cause(waits) // of the target, or of the ledger
			}
			return d.outcomeOf(err, sent)
		}
		if to.Gate != nil {
			// One at a time: all requests rely on one version of the limit.
			if err := to.takeTurn(waits, d.v.s); err != nil {
				return fail(err, false)
			}
			defer func() { <-to.Turn }()
		}
	}
	for round := 0; ; round++ {
		if err := d.v.s.Pause(d.v.life.cleanupCtx, round-1); err != nil {
			return fail(err, false)
		}
		seen, err := d.see()
		if err != nil {
			return fail(err, false)
		}
		// A change of its own for each attempt: the former one has its outcome.
		c := d.newRemoval(seen)
		if to != nil {
			if to.later {
				c.edits = append(c.edits, func(t *claimTable) { t.later = true })
				_ = d.l.rest(d.l.life) // without d.l.life, the change fails with the reason
			}
			if to.Gate != nil {
				first, _, err := to.Gate.Admit(waits, d.v.s)
				if err != nil {
					return fail(err, false)
				}
				c.ops = append(c.ops, first...)
			}
			c.ops = append(c.ops, &zk.CreateRequest{Path: znode.Join(to.Dir, to.Prefix), Data: d.Data, Flags: zk.FlagSequence})
			c.size += len(d.Data) + len(to.Dir)
		}
		d.startRemoval(c, 0)
		<-c.done
		switch err = c.err; {
		case err == nil:
			// Not before: until the claim ends, the message still makes room as a removal.
			d.v.claims.endRemoval()
			if to != nil && to.Gate != nil {
				to.Gate.Passed(1)
			}
		case err == errUnseen && !c.sent:
			continue
		case to != nil:
			if err = d.repair(waits, to, err); err == nil {
				if session.ClassOf(c.err) == session.ClassBadVersion {
					round = 0 // the gate has pauses of its own
				}
				continue
			}
		}
		return fail(err, c.sent)
	}
}

// takeTurn waits until no other MoveTo uses the gate.
func (to *Target) takeTurn(ctx context.Context, s *session.Session) error {
	select {
	case to.Turn <- struct{}{}:
		return nil
	case <-s.Done():
		return znode.LossOf(s.Err())
	case <-ctx.Done():
		return session.Cancelled(ctx)
	}
}

// repair makes a target take the message, which it has refused with why. It returns nil if the
// removal can be tried again, and the reason if not. ctx ends the wait for the messages in the target.
func (d *Delivery) repair(ctx context.Context, to *Target, why error) (failed error) {
	s, life := d.v.s, d.v.life
	switch class := session.ClassOf(why); {
	case class == session.ClassBadVersion && to.Gate != nil:
		// Another producer has put into the target since its messages were counted.
		return to.Gate.Refused(why)
	case class == session.ClassNodeExists && (to.later || to.Dir == d.v.cfg.Path || to.Dir == d.ref.partition.dir):
		// FreeNumber would wait for messages in the directory, which may have the message itself, or messages
		// that its consumer has no room for meanwhile.
		var skipped bool
		if skipped, failed = commit.SkipNumber(ctx, s, to.Dir); skipped || failed != nil {
			break
		}
		other := "another queue"
		if to.later {
			other = "another delay"
		}
		return fmt.Errorf("%s has no free number: choose %s: %w", to.Dir, other, why)
	case class == session.ClassNodeExists:
		failed = commit.FreeNumber(ctx, s, to.Dir, to.NumberOf)
	case class == session.ClassNoNode:
		// The message, the directory of the target or its limit may be missing.
		if to.Gate != nil {
			_ = to.Gate.Refused(why) // it creates the limit again
		}
		var there bool
		if there, failed = d.exists(); failed == nil && !there {
			return why
		}
		if failed == nil {
			failed = to.MakeDir(life.cleanupCtx, s, to.Dir)
		}
	default:
		return why
	}
	if session.ClassOf(failed).Again() && s.Err() == nil {
		return nil
	}
	return failed
}

// removeReceived removes a message that was received, and calls done once with the outcome. The
// removal waits for the next claim, for the time wait at most. A goroutine for each message would
// take a third of the time of a delivery, so there is one only if the removal needs further requests.
func (d *Delivery) removeReceived(wait time.Duration, done func(err error)) {
	seen, ok := d.lastSight()
	if !ok {
		go func() { done(d.remove(nil)) }()
		return
	}
	c := d.newRemoval(seen)
	c.onDone = func() {
		switch {
		case c.err == nil:
			d.v.claims.endRemoval()
			done(d.outcomeOf(nil, false))
		case c.err == errUnseen && !c.sent:
			go func() { done(d.remove(nil)) }()
		default:
			go func() { done(d.outcomeOf(c.err, c.sent)) }()
		}
	}
	d.startRemoval(c, wait)
}

// newRemoval returns a change that deletes the message and ends its claim.
func (d *Delivery) newRemoval(seen sighting) *change {
	c := newDrop(d.ref)
	c.seen = seen
	c.ops = []any{&zk.DeleteRequest{Path: d.ID, Version: -1}}
	c.size = len(d.ID) + 40
	return c
}

// startRemoval starts a removal, which makes room for another claim, at once or within a time.
func (d *Delivery) startRemoval(c *change, within time.Duration) {
	// Before the outcome is known: a claim that is picked right after a refusal must not take
	// the room of this message.
	c.endRemoval = d.v.claims.endRemoval
	if within > 0 {
		d.l.startWithClaim(c, within)
	} else {
		d.l.start(c)
	}
	// Behind the start: a claim that takes this room must come after the removal.
	d.v.claims.beginRemoval()
}

// exists reports whether the message exists, and not another one of its name.
func (d *Delivery) exists() (bool, error) {
	there, stat, err := d.v.s.Exists(d.v.life.cleanupCtx, d.ID)
	return there && stat.Czxid == d.czxid, err
}

// lastSight returns what is known about the directory of the message without a request. It
// returns false if that does not suffice for a removal.
func (d *Delivery) lastSight() (seen sighting, ok bool) {
	p := d.ref.partition
	if p.holdsLedgers && !p.recreated.Load() {
		return seen, true
	}
	seen = sighting{needed: true, partition: p, conn: d.v.s.Connection()}
	return seen, seen.conn == p.seenOn.Load() && seen.holds(seen.conn)
}

// see returns the last sighting, or looks for the message. It returns an error if the name of the
// message may be the name of another one by now.
func (d *Delivery) see() (sighting, error) {
	seen, ok := d.lastSight()
	if ok {
		return seen, nil
	}
	p, s, ctx := d.ref.partition, d.v.s, d.v.life.cleanupCtx
	err := znode.ReadPatiently(ctx, s, "settle", d.v.cfg.Path, func() error {
		// A server that lags, or a deposed leader, would still show the message of the deleted
		// directory.
		if err := s.SyncQuorum(ctx, d.v.cfg.Path); err != nil {
			return err
		}
		// Before the look: an event during the look must count.
		seen.late = p.mayBeRecreated()
		seen.conn = s.Connection()
		there, err := d.exists()
		if err == nil && !there {
			err = zk.ErrNoNode
		}
		return err
	})
	if err == nil {
		p.seenOn.Store(seen.conn)
	}
	return seen, err
}
