package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// ErrIDInUse says that the child of another participant has the id.
var ErrIDInUse = errors.New("zksync: the id is in use")

// A phase says where the participant of a Barrier is.
type phase uint8

const (
	outside phase = iota
	entering
	inside
	leaving
)

var phaseNames = [...]string{"outside", "entering", "inside", "leaving"}

// A Barrier is one value's access to a double barrier: one participant after another
// enters and leaves. One call of Enter or Leave at a time is under way.
type Barrier struct {
	mu    sync.Mutex
	phase phase
	in    *Participant // while inside

	// Used by the call that is under way:
	m    *session.Manager
	path string
	size int    // the number of participants that open the barrier
	id   string // names the child; may be empty
	dir  znode.Directory

	settled  chan struct{} // closed when no step of the call before runs any more; nil before the first call
	leftover child         // was created under an earlier session, and may still exist
	strange  int           // the number of strange children in the last listing
	drift    int32         // of the directory at the last listing, see barrierView.note
}

// New returns a Barrier at path that opens for size participants.
func New(m *session.Manager, path string, size int, id string) *Barrier {
	return &Barrier{m: m, path: path, size: size, id: id, dir: znode.Directory{Path: path}}
}

// begin begins a call that needs one phase and brings about another one. In any other
// phase it fails with refused, and if another participant than only is inside, unless only
// is nil. It returns the participant that is inside.
func (b *Barrier) begin(need, during phase, only *Participant, refused error) (*Participant, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.phase != need {
		return nil, fmt.Errorf("%w: this participant is %s", refused, phaseNames[b.phase])
	}
	p := b.in
	if only != nil && p != only {
		return nil, fmt.Errorf("%w: this participant has left and entered again", refused)
	}
	b.phase, b.in = during, nil
	return p, nil
}

// end ends a call.
func (b *Barrier) end(after phase, p *Participant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.phase, b.in = after, p
}

// Enter waits until the barrier opens, under one session after another if a session
// ends. If it fails, it returns the number of participants that it saw last. It fails with
// ErrBusy unless the participant is outside.
func (b *Barrier) Enter(ctx context.Context) (p *Participant, there int, err error) {
	if _, err := b.begin(outside, entering, nil, znode.ErrBusy); err != nil {
		return nil, 0, err
	}
	err = b.m.Retry(ctx, func(s *session.Session) error {
		// A child that is still being deleted must not be counted beside a new one.
		if b.settled != nil {
			if err := znode.AwaitClosed(ctx, b.settled); err != nil {
				return err
			}
		}
		joining := &Participant{barrierView: barrierView{b: b, s: s}, lease: s.Lease()}
		err := joining.runApart(ctx, "enter", joining.enter, func(err error) {
			// After a failure, enter has dropped the child itself.
			if err == nil {
				joining.drop() // after Enter has returned
			}
		})
		p, there = joining, int(joining.there.Load())
		return err
	})
	if err != nil {
		b.end(outside, nil)
		return nil, there, err
	}
	b.end(inside, p)
	return p, there, nil
}

// Leave deletes the child of the participant and waits for the end of the round. If it
// fails, it returns the number of participants that it saw last. It fails with ErrNotHeld
// unless a participant is inside, and if entered is not nil, that participant.
func (b *Barrier) Leave(ctx context.Context, entered *Participant) (there int, err error) {
	p, err := b.begin(inside, leaving, entered, znode.ErrNotHeld)
	if err != nil {
		return 0, err
	}
	defer b.end(outside, nil)
	// A late result needs no clean-up: a child that leave could not delete stays in b.leftover.
	err = p.runApart(ctx, "leave", p.leave, func(error) {})
	return int(p.there.Load()), err
}
