package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// startWait starts the wait at its first call.
func (t *take) startWait(context.Context) error {
	t.line.leaveToSkip()
	if t.wait == nil {
		t.wait = t.c.cfg.Manager.StartIdleWait("take", t.c.cfg.Path, func(context.Context) error { return t.c.reason() })
	}
	return nil
}

// startWatching starts the wait, and waits until this Take may wait for a change. One Take of a view does so at a time, or a
// message would wake all of them. With a message or an error in hand, this Take lets the next one look, which finds
// the further messages, and messages that this one gives back. So no wake-up is lost when a Take ends.
func (t *take) startWatching(ctx context.Context) error {
	if err := t.startWait(ctx); err != nil || t.watches || t.line.path != "" {
		return err // a Take in the line looks at each change whether it has to leave, since consumers behind it wait for that
	}
	select {
	case t.v.watching <- struct{}{}:
		t.watches = true
		return nil
	case <-ctx.Done():
		return session.Cancelled(ctx)
	}
}

// stopWatching lets the next Take wait for a change.
func (t *take) stopWatching() {
	if t.watches {
		t.watches = false
		<-t.v.watching
	}
}

// withReason returns err, or if the end of the caller has caused it, the error that says what the Take waited for.
func (t *take) withReason(err error) error {
	if t.caller.Err() != nil && session.ClassOf(err) == session.ClassCancelled {
		return t.cancelled(err)
	}
	return err
}

// cancelled returns the error of a Take whose caller has ended, instead of err, unless
// err has a reason of its own, such as a server that does not answer.
func (t *take) cancelled(err error) error {
	switch {
	case session.WaitReason(err) != nil:
		return err
	case t.wait == nil:
		return t.c.cfg.Manager.Cancelled(t.caller)
	}
	return t.wait.Cancelled(t.caller)
}

// reason returns why there is no message to take, as far as the view knows.
func (c *Consumer) reason() error {
	// The view of the present session: the Take may have begun under an earlier one.
	c.mu.Lock()
	v := c.view
	c.mu.Unlock()
	if v == nil {
		return errors.New("for the queue to be listed")
	}
	v.partitions.mu.Lock()
	defer v.partitions.mu.Unlock()
	skipped, others, picked := 0, 0, 0
	now := time.Now().UnixMilli()
	var due time.Time
	for _, p := range v.partitions.all {
		skipped += len(p.skipped)
		others += p.others
		picked += len(p.picked)
		if it, ok := p.waiting.first(); ok && it.Due > now && due.IsZero() {
			due = time.UnixMilli(it.Due)
		} else if p.expires && p.key > now && due.IsZero() {
			// The partition is not listed before its span begins: its messages fall due in
			// the span.
			due = time.UnixMilli(p.key)
		}
	}
	switch {
	case len(v.partitions.readings.unsent) > 0:
		return errors.New("for a message: another Take of this value reads an earlier one")
	case others > 0 || picked > 0:
		return fmt.Errorf("for a message: consumers have claimed all that wait, %d of them others and %d this one", others, picked)
	case !due.IsZero():
		return fmt.Errorf("for a message to become due, the first not before %s", due.Format(time.RFC3339))
	case skipped > 0:
		return fmt.Errorf("for a message: the queue has only %d that this consumer skips (see Skipped)", skipped)
	}
	return errors.New("for a message: the queue is empty")
}

const (
	// fewRefusals is the number of refusals after which a Take takes turns.
	fewRefusals = 3
	// turnPause is the round of the longest pause that misses no turn.
	turnPause = 4
)

// prepare comes before each attempt, ahead of the reads, which would be old after it. again is the
// number of attempts in a row with one message.
func (t *take) prepare(ctx context.Context, again int) error {
	// If the same message fails again and again, there may be another reason than other consumers,
	// such as a server that lags. The first pauses are short, so that no turn is missed.
	if err := t.v.s.Pause(ctx, max(min(again, turnPause), again/4)); err != nil || t.refused < fewRefusals {
		return err
	}
	// Consumers rest only beside the ledgers of others. Without the permission to create one, the Take goes on.
	_, _ = t.c.openClaims(ctx, t.v)
	return t.line.nextTurn(ctx, t.took)
}
