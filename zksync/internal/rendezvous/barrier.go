package rendezvous

import (
	"context"
	"errors"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// ErrIDInUse says that the child of another participant has the id.
var ErrIDInUse = errors.New("zksync: the id is in use")

// A Barrier is one value's access to a double barrier: one participant after another
// enters and leaves. At most one call of Enter or Leave may be under way.
type Barrier struct {
	m    *session.Manager
	path string
	size int    // the number of participants that open the barrier
	id   string // names the child; may be empty
	dir  znode.Directory

	settled  chan struct{} // closed when no step of the call before runs any more; nil before the first call
	leftover child         // was created under an earlier session, and may still exist
	strange  int           // the number of strange children in the last listing
}

// New returns a Barrier at path that opens for size participants.
func New(m *session.Manager, path string, size int, id string) *Barrier {
	return &Barrier{m: m, path: path, size: size, id: id, dir: znode.Directory{Path: path}}
}

// Enter waits until the barrier opens, under one session after another if a session
// ends. If it fails, it returns the number of participants that it saw last.
func (b *Barrier) Enter(ctx context.Context) (p *Participant, there int, err error) {
	err = b.m.Retry(ctx, func(s *session.Session) error {
		if err := b.awaitSettled(ctx); err != nil {
			return err
		}
		p = &Participant{barrierView: barrierView{b: b, s: s}, lease: s.Lease()}
		err := p.runApart(ctx, "enter", p.enter, func(err error) {
			if err == nil {
				p.drop()
			}
		})
		there = int(p.there.Load())
		return err
	})
	return p, there, err
}

// awaitSettled waits until no step of the call before runs: a child that is still being
// deleted must not be counted beside a new one.
func (b *Barrier) awaitSettled(ctx context.Context) error {
	if b.settled != nil {
		select {
		case <-b.settled:
		case <-ctx.Done():
			return session.Cancelled(ctx)
		}
	}
	return nil
}
