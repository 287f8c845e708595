package zksync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// A takeWait is the wait of one Take, under one session after another. One goroutine
// uses it.
type takeWait struct {
	c      *consumer
	caller context.Context // ends with the ctx of the Take, and when Close begins
	wait   *session.Wait   // nil until there was nothing to take
}

// start starts the wait at its first call.
func (w *takeWait) start() {
	if w.wait == nil {
		w.wait = w.c.q.m.StartIdleWait("take", w.c.q.path, func(context.Context) error { return w.c.waitReason() })
	}
}

func (w *takeWait) end() { w.wait.Stop() }

// cancelled returns the error of a Take whose caller has ended, instead of err, unless
// err has a reason of its own, such as a server that does not answer.
func (w *takeWait) cancelled(err error) error {
	switch {
	case session.WaitReason(err) != nil:
		return err
	case w.wait == nil:
		return w.c.q.m.Cancelled(w.caller)
	}
	return w.wait.Cancelled(w.caller)
}

// waitReason returns why there is no message to take, as far as the view knows.
func (c *consumer) waitReason() error {
	c.mu.Lock()
	v := c.view
	c.mu.Unlock()
	if v == nil {
		return errors.New("for the queue to be listed")
	}
	return v.waitReason()
}

// waitReason returns why the view has no message to take.
func (v *queueView) waitReason() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	// Picked messages count as claimed by this consumer: they are, or will be at once.
	ours, claimed := len(v.picked), len(v.picked)+len(v.claimedByOthers)
	if claimed > 0 {
		return fmt.Errorf("for a message: consumers have claimed all that wait, %d of them others and %d this one", claimed-ours, ours)
	}
	if due := v.dueLocked(); !due.IsZero() {
		return fmt.Errorf("for a message to become due, the first at %s", due.Format(time.RFC3339))
	}
	skipped := 0
	for _, p := range v.partitions {
		skipped += len(p.skipped)
	}
	if skipped > 0 {
		return fmt.Errorf("for a message: the queue has only %d that this consumer skips (see Skipped)", skipped)
	}
	return errors.New("for a message: the queue is empty")
}

// dueLocked returns the due time of the first known message, zero if none is known; v.mu
// is held.
func (v *queueView) dueLocked() time.Time {
	if !v.c.q.kind.delayed {
		return time.Time{}
	}
	for _, p := range v.partitions {
		if it, ok := p.waiting.first(); ok {
			return time.UnixMilli(it.due)
		}
		if p.key > time.Now().UnixMilli() {
			// The partition is not listed before its span begins: its messages fall due in
			// the span.
			return time.UnixMilli(p.key)
		}
	}
	return time.Time{}
}
