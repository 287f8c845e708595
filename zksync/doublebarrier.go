package zksync

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/rendezvous"
)

// A DoubleBarrier lets a group of participants begin and end a piece of work together:
// Enter returns when n participants have come, and Leave returns when all of them are
// done. A value is one participant. The same barrier serves the next round at once.
//
// If more than n participants come before the barrier opens, all of them are in that
// round. A participant that comes later waits for the next round, which begins when all
// participants of this round have left. A participant that crashes delays the others for
// no longer than its session and one more session timeout.
//
// On the server a DoubleBarrier is the directory path with an ephemeral child for each
// participant, and the child "ready" while a round goes on. Curator's
// DistributedDoubleBarrier and kazoo's DoubleBarrier use the same znodes and take part in
// the same rounds; the promises about participants that crash or give up hold among
// participants of this package. Children with other names do not count. The data of the
// directory belongs to the barrier.
//
// The version of the directory keeps rounds apart. If the directory is deleted between two
// rounds, by an operator or by the server because it was empty, a new directory begins
// again at version 0. If the request that ends a round is still under way then, and
// reaches the new directory at the very version that the request expects, it ends a round there. If
// another client deletes ready before a participant has seen it, that participant stays in Enter, and
// the others wait for it in Leave.
//
// A DoubleBarrier must not be copied.
type DoubleBarrier struct {
	_ noCopy
	primitive
	n       int
	barrier *rendezvous.Barrier
}

// NewDoubleBarrier returns a participant in the barrier at path that opens when
// n participants have come. All participants must give the same n. The first call reports
// an n below 1 (ErrInvalidOption). WithMaxWait bounds Enter.
func NewDoubleBarrier(m *session.Manager, path string, n int, opts ...DoubleBarrierOption) *DoubleBarrier {
	p := newPrimitive("DoubleBarrier", m, path, opts)
	switch {
	case p.err != nil:
	case n < 1:
		p.err = fmt.Errorf("%w: a double barrier for %d participants, want at least 1", ErrInvalidOption, n)
	case p.cfg.id != "" && (strings.Contains(p.cfg.id, "/") || session.CheckPath("/"+rendezvous.IDPrefix+p.cfg.id) != nil):
		p.err = fmt.Errorf("%w: WithID: no znode can be named after %q, want an id as \"node-1\"", ErrInvalidOption, p.cfg.id)
	}
	m.ExpectHolds()
	return &DoubleBarrier{primitive: p, n: n, barrier: rendezvous.New(m, path, n, p.cfg.id)}
}

// Enter waits until n participants, this one included, have come. If a round began
// without this participant, Enter first waits for the end of that round.
//
// When ctx ends before that, Enter removes this participant, and waits for the removal at
// most a second: if no server carries out the removal in that time, it happens later. If
// the barrier has opened for this participant meanwhile, Enter returns nil nevertheless:
// the participant is inside. The error of a wait that was ended wraps a *CountError.
//
// After a lost connection Enter continues to wait. After a lost session it continues
// under the next session, and if the round had begun just before, it enters the next
// round. Enter fails with ErrBusy unless this participant is outside, with ErrIDInUse if
// another participant has its id, with ErrLost if another client removes its znode, and
// with ErrClosed when the Manager is closed. It does not report a later loss: only Leave
// and the context of Do report it.
func (b *DoubleBarrier) Enter(ctx context.Context) error {
	_, err := b.enter(ctx)
	return b.opError("enter", err)
}

func (b *DoubleBarrier) enter(ctx context.Context) (*rendezvous.Participant, error) {
	if err := ready(ctx, b.invalid()); err != nil {
		return nil, err
	}
	ctx, cancel := b.cfg.bound(ctx)
	defer cancel()
	p, there, err := b.barrier.Enter(ctx)
	return p, b.counted(there, err)
}

// counted adds the number of participants to the error of a wait.
func (b *DoubleBarrier) counted(there int, err error) error {
	switch session.ClassOf(err) {
	case session.ClassCancelled, session.ClassLost, session.ClassRemoved, session.ClassClosed:
		return &CountError{There: there, Size: b.n, Err: err}
	}
	return err
}

// Leave waits until all participants of the round have left. When Leave returns, also
// with an error, this participant has left or is about to leave, and may enter again.
//
// When ctx ends before that, only the wait for the others ends: this participant still
// leaves, and Leave waits for that at most a second. The error of a wait that was ended
// wraps a *CountError.
//
// After a lost connection Leave continues to wait. Leave fails with ErrLost when the
// session is lost, or was lost while the participant was inside, or if another client has
// removed the znode of the participant: the others may then have continued without
// waiting. It fails with ErrLost and ErrClosed after the Manager was closed, and with
// ErrNotHeld if the participant is not inside.
func (b *DoubleBarrier) Leave(ctx context.Context) error {
	if err := b.invalid(); err != nil {
		return b.opError("leave", err)
	}
	return b.leave(ctx, nil)
}

func (b *DoubleBarrier) leave(ctx context.Context, entered *rendezvous.Participant) error {
	there, err := b.barrier.Leave(ctx, entered)
	return b.opError("leave", b.counted(there, err))
}

// Do enters, calls fn, and leaves when fn returns. fn's context is derived from ctx. It
// also ends, with a cause, when the session is lost (ErrLost: before the others can
// continue without this participant), when the session finds that another client has removed the
// znode (ErrLost), or when the Manager is closed (ErrLost and ErrClosed). Do
// returns the error of fn, joined with the error of Leave. If Leave was called during fn, that
// error is ErrNotHeld, and a participant that has entered again since stays inside. If Enter
// fails, Do returns its error without having called fn. If fn panics, Do does not wait for the
// others.
// Manager.Close waits for fn as long as Close says.
func (b *DoubleBarrier) Do(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	p, err := b.enter(ctx)
	if err != nil {
		return b.opError("enter", err)
	}
	returned := false
	defer func() {
		if !returned {
			at, cancel := context.WithCancel(ctx)
			cancel()
			_ = b.leave(at, p) // the panic says more than its error could
			return
		}
		if left := b.leave(ctx, p); left != nil {
			err = errors.Join(err, left)
		}
	}()
	if held, end, lost := p.Hold(ctx, ErrReleased); lost == nil { // otherwise Leave says why
		defer end()
		err = fn(held)
	}
	returned = true
	return err
}

// A CountError is part of the error of an Enter or Leave whose wait was ended. Enter counts
// the participants that have come, the caller included. Leave counts the participants that
// are still inside. When the wait was ended by another reason than its ctx, no server may be there to
// ask, and the number may include children of the directory that belong to no participant.
type CountError struct {
	There int   // number of participants that were counted
	Size  int   // number of participants of the barrier
	Err   error // the reason why the wait ended
}

// Error begins with the numbers.
func (e *CountError) Error() string {
	return fmt.Sprintf("%d of %d were there: %v", e.There, e.Size, e.Err)
}

// Unwrap returns the reason why the wait ended.
func (e *CountError) Unwrap() error { return e.Err }
