package zksync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// A takeWait is the wait of one Take, under one session after another. It is used by
// one goroutine.
type takeWait struct {
	c      *consumer
	caller context.Context // ends with the ctx of the Take, and when Close begins
	wait   *session.Wait   // nil until there was nothing to take
}

func (w *takeWait) start() {
	if w.wait == nil {
		w.wait = w.c.q.m.StartIdleWait("take", w.c.q.path, func(context.Context) error { return w.c.waitReason() })
	}
}

func (w *takeWait) end() { w.wait.Stop() }

// cancelled returns the error of a Take whose caller has ended, in place of err,
// unless err has a reason of its own, such as a server that does not answer.
func (w *takeWait) cancelled(err error) error {
	switch {
	case session.WaitReason(err) != nil:
		return err
	case w.wait == nil:
		return w.c.q.m.Cancelled(w.caller)
	}
	return w.wait.Cancelled(w.caller)
}

// waitReason says why there is nothing to take, as far as is known.
func (c *consumer) waitReason() error {
	c.mu.Lock()
	v := c.view
	c.mu.Unlock()
	if v == nil {
		return errors.New("for the queue to be listed")
	}
	return v.waitReason()
}

func (v *queueView) waitReason() error {
	v.mu.Lock()
	defer v.mu.Unlock()
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

// dueLocked returns the due time of the first known message, zero if none is known;
// o.mu is held.
func (v *queueView) dueLocked() time.Time {
	if !v.c.q.kind.delayed {
		return time.Time{}
	}
	for _, p := range v.partitions {
		if it, ok := p.waiting.first(); ok {
			return time.UnixMilli(it.due)
		}
		if p.key > time.Now().UnixMilli() {
			return time.UnixMilli(p.key) // its messages are listed when they can be due
		}
	}
	return time.Time{}
}
