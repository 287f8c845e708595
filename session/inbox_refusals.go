package session

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// inboxRefusals has the reads of an Inbox that were refused and are sent again. All of them
// are one Wait, because an Inbox may have thousands.
type inboxRefusals struct {
	reads int        // that were refused, and not answered since
	times int        // the number of their refusals
	last  *InboxRead // the read that was refused last; nil if it was answered since
	why   error      // its refusal
	wait  *Wait      // nil while there are no such reads
}

// refuse notes a refusal of a read that is sent again; in.mu is held.
func (in *Inbox) refuse(r *InboxRead, c *wire.Call, now time.Time) {
	f := &in.refusals
	if r.refused {
		in.repeats.note(now)
	} else {
		in.firsts.note(now)
		r.refused = true
		f.reads++
	}
	f.times++
	f.last, f.why = r, r.opError(errorOfCode(c.MultiCode()))
	if f.wait == nil {
		f.wait = in.s.StartWait("read", in.s.m.strip(in.first), func(context.Context) error { return in.Refusal() })
	}
}

// endRefusals notes that a read was answered or stopped; in.mu is held. It returns the Wait
// that is over, for a Stop without in.mu: Stop calls the observer. It may return nil.
func (in *Inbox) endRefusals(r *InboxRead) (over *Wait) {
	f := &in.refusals
	if !r.refused {
		return nil
	}
	r.refused = false
	if f.last == r {
		f.last, f.why = nil, nil
	}
	if f.reads--; f.reads > 0 {
		return nil
	}
	over, *f = f.wait, inboxRefusals{}
	return over
}

// Refusal returns why reads are sent again: the number of these reads, and the refusal of the last one.
// It returns nil if servers refuse none. Any goroutine may call it.
func (in *Inbox) Refusal() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	f := &in.refusals
	if f.reads == 0 {
		return nil
	}
	reads := "a read"
	if f.reads > 1 {
		reads = fmt.Sprint(f.reads, " reads")
	}
	if f.last == nil {
		return fmt.Errorf("for %s that the server has refused %d times", reads, f.times)
	}
	return fmt.Errorf("for %s that the server has refused %d times, at last %w", reads, f.times, f.why)
}
