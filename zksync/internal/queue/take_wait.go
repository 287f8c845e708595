package queue

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
	c      *Consumer
	caller context.Context // ends with the ctx of the Take, and when Close begins
	wait   *session.Wait   // nil until there was nothing to take
}

// start starts the wait at its first call.
func (w *takeWait) start(context.Context) error {
	if w.wait == nil {
		w.wait = w.c.cfg.Manager.StartIdleWait("take", w.c.cfg.Path, func(context.Context) error { return w.reason() })
	}
	return nil
}

func (w *takeWait) end() { w.wait.Stop() }

// cancelled returns the error of a Take whose caller has ended, instead of err, unless
// err has a reason of its own, such as a server that does not answer.
func (w *takeWait) cancelled(err error) error {
	switch {
	case session.WaitReason(err) != nil:
		return err
	case w.wait == nil:
		return w.c.cfg.Manager.Cancelled(w.caller)
	}
	return w.wait.Cancelled(w.caller)
}

// reason returns why there is no message to take, as far as the view knows.
func (w *takeWait) reason() error {
	c := w.c
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
	var due time.Time
	for _, p := range v.partitions.all {
		skipped += len(p.skipped)
		others += p.others
		picked += len(p.picked)
		if it, ok := p.waiting.first(); ok && p.delayed && due.IsZero() {
			due = time.UnixMilli(it.Due)
		} else if p.expires && p.key > time.Now().UnixMilli() && due.IsZero() {
			// The partition is not listed before its span begins: its messages fall due in
			// the span.
			due = time.UnixMilli(p.key)
		}
	}
	switch {
	case others > 0 || picked > 0:
		return fmt.Errorf("for a message: consumers have claimed all that wait, %d of them others and %d this one", others, picked)
	case !due.IsZero():
		return fmt.Errorf("for a message to become due, the first not before %s", due.Format(time.RFC3339))
	case skipped > 0:
		return fmt.Errorf("for a message: the queue has only %d that this consumer skips (see Skipped)", skipped)
	}
	return errors.New("for a message: the queue is empty")
}
