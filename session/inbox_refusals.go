package session

import (
	"context"
	"fmt"
	"time"
)

// inboxRefusals has the reads of an Inbox that were refused, or whose answers were too slow or were lost
// twice, and that are sent again. All of them are one Wait, because an Inbox may have thousands.
type inboxRefusals struct {
	reads int        // that have failed, and were not answered since
	times int        // the number of their failures
	last  *InboxRead // the read that has failed last; nil if it was answered since
	why   error      // its failure
	wait  *Wait      // nil while there are no such reads
}

// refuse is noteFailure for a failure that limits the reads that are sent in a second; in.mu is held.
func (in *Inbox) refuse(r *InboxRead, why error, now time.Time) {
	if r.refused {
		in.repeats.refused(now)
	} else {
		in.firsts.refused(now)
	}
	in.noteFailure(r, why)
}

// noteFailure notes why a read has failed that is sent again; in.mu is held.
func (in *Inbox) noteFailure(r *InboxRead, why error) {
	f := &in.refusals
	if !r.refused {
		r.refused = true
		f.reads++
	}
	f.times++
	f.last, f.why = r, r.opError(why)
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

// Refusal returns why reads are sent again: the number of these reads, and the failure of the last one.
// It returns nil if there are none. Any goroutine may call it.
func (in *Inbox) Refusal() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	f := &in.refusals
	if f.reads == 0 {
		return nil
	}
	reads := "a read that has"
	if f.reads > 1 {
		reads = fmt.Sprint(f.reads, " reads that have")
	}
	if f.last == nil {
		return fmt.Errorf("for %s failed %d times", reads, f.times)
	}
	return fmt.Errorf("for %s failed %d times, at last %w", reads, f.times, f.why)
}
