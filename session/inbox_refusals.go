package session

import (
	"context"
	"fmt"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// inboxRefusals has the reads of an Inbox that were refused and are sent again. All of them
// are one Wait, because an Inbox may have thousands.
type inboxRefusals struct {
	reads int // that were refused, and not answered since
	last  error
	wait  *Wait // nil while there are no such reads
}

// refuse notes a refusal of a read that is sent again; in.mu is held.
func (in *Inbox) refuse(r *InboxRead, c *wire.Call) {
	f := &in.refusals
	if !r.refused {
		r.refused = true
		f.reads++
	}
	f.last = fmt.Errorf("for a read that the server has refused %d times: %w", r.rounds, r.opError(errorOfCode(c.MultiCode())))
	if f.wait == nil {
		f.wait = in.s.StartWait(r.opName(), in.s.m.strip(r.key.path), func(context.Context) error { return in.Refusal() })
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
	if f.reads--; f.reads > 0 {
		return nil
	}
	over, *f = f.wait, inboxRefusals{}
	return over
}

// Refusal returns the last refusal of a read that is sent again, nil if no read waits because of
// one. Any goroutine may call it.
func (in *Inbox) Refusal() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.refusals.last
}
