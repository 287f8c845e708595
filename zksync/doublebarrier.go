package zksync

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/rendezvous"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A DoubleBarrier lets a group of participants begin and end a piece of work together:
// Enter returns when n participants have come, and Leave returns when all of them are
// done. A value is one participant. The same barrier serves the next round at once.
//
//	b := zksync.NewDoubleBarrier(m, "/jobs/42", 3)
//	if err := b.Enter(ctx); err != nil { ... } // until all three are here
//	// the work
//	if err := b.Leave(ctx); err != nil { ... } // until all three are done
//
// Enter alone is the synchronising queue of the ZooKeeper documentation: members gather,
// and all start when the last member has come.
//
// If more than n participants come before the barrier opens, all of them are in that
// round. A participant that comes later waits for the next round, which begins when all
// participants of this round have left. A participant that crashes delays the others for
// no longer than its session and one more session timeout.
//
// On the server a DoubleBarrier is the directory path with an ephemeral child for each
// participant, and the child "ready" while a round goes on. Curator's
// DistributedDoubleBarrier and kazoo's DoubleBarrier use the same znodes and take part in
// the same rounds. Children with other names do not count. The algorithm is the double
// barrier recipe of the ZooKeeper documentation, with two differences. Only a participant
// that may be the last to come lists the participants: the others count by the answers to
// their own requests, and wait for one znode. And every change of the barrier also writes
// an empty value to the directory, so that the version of the directory distinguishes
// rounds and decisions of different times. So the directory must hold no other data, data
// watches on the directory see the changes, and the promises about participants that
// crash or give up hold among participants of this package.
//
// All methods may be called from any goroutine. A DoubleBarrier must not be copied.
type DoubleBarrier struct {
	path    string
	n       int
	cfg     config
	err     error
	barrier *rendezvous.Barrier

	mu    sync.Mutex
	phase phase
	in    *rendezvous.Participant // while inside
}

type phase uint8

const (
	outside phase = iota
	entering
	inside
	leaving
)

var phaseNames = [...]string{"outside", "entering", "inside", "leaving"}

// NewDoubleBarrier returns a participant in the barrier at path that opens when
// n have come. All participants are to give the same n. It does no I/O and returns
// no error: an invalid path, size or option is reported by the first call. WithID
// names the participant, which must be the only one of that name; WithMaxWait
// bounds Enter.
func NewDoubleBarrier(m *session.Manager, path string, n int, opts ...DoubleBarrierOption) *DoubleBarrier {
	cfg, err := newConfig("DoubleBarrier", opts)
	if err == nil {
		err = session.CheckPath(path)
	}
	if err == nil && n < 1 {
		err = fmt.Errorf("%w: a double barrier for %d participants, want at least 1", ErrInvalidOption, n)
	}
	if err == nil && cfg.id != "" {
		err = checkParticipantID(cfg.id)
	}
	m.ExpectHolds()
	return &DoubleBarrier{path: path, n: n, cfg: cfg, err: err, barrier: rendezvous.New(m, path, n, cfg.id)}
}

// checkParticipantID says whether a znode can be named after id.
func checkParticipantID(id string) error {
	if err := session.CheckPath("/" + rendezvous.IDPrefix + id); err != nil || strings.Contains(id, "/") {
		return fmt.Errorf("%w: WithID: no znode can be named after %q, want an id as \"node-1\"", ErrInvalidOption, id)
	}
	return nil
}

// Enter waits until n participants, this one included, have come. If a round began
// without this participant, Enter first waits for the end of that round.
//
// When ctx ends before that, Enter removes this participant: after the removal no other
// participant counts it. Enter waits for the removal, but at most a second. If no server
// can be reached in that time, the removal happens later, unless the session ends first.
// If the barrier has opened for this participant meanwhile, Enter returns nil
// nevertheless: the participant is inside. The error of a wait that was ended wraps a
// *CountError with the number of participants. After three seconds, and then at growing
// intervals, Enter logs the participants that have come.
//
// After a lost connection Enter continues to wait. After a lost session it continues
// under the next session. If the round began just before that loss, it enters the next
// round. Enter fails with ErrBusy unless this participant is outside, with ErrIDInUse if
// another participant has its id, with ErrLost if another client removes its znode, and
// with ErrClosed when the Manager is closed.
//
// Enter does not report events of the time inside, for example a loss: only Leave does.
// See Do.
func (b *DoubleBarrier) Enter(ctx context.Context) error {
	_, err := b.enter(ctx)
	return opError("enter", b.path, err)
}

func (b *DoubleBarrier) enter(ctx context.Context) (*rendezvous.Participant, error) {
	if b.err != nil {
		return nil, b.err
	}
	if ctx.Err() != nil {
		return nil, session.Cancelled(ctx)
	}
	b.mu.Lock()
	if b.phase != outside {
		defer b.mu.Unlock()
		return nil, fmt.Errorf("%w: this participant is %s", ErrBusy, phaseNames[b.phase])
	}
	b.phase = entering
	b.mu.Unlock()

	ctx, cancel := b.cfg.bound(ctx)
	defer cancel()
	p, there, err := b.barrier.Enter(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.phase, b.in = outside, nil
	if err != nil {
		return nil, b.counted(there, err)
	}
	b.phase, b.in = inside, p
	return p, nil
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
// leaves. Leave waits for its answer for up to a second more. If no server can be reached
// in that time, the participant leaves later. The error of a wait that was ended wraps a
// *CountError with the number of participants that were still inside.
//
// After a lost connection Leave continues to wait. Leave fails with ErrLost when the
// session is lost, or was lost while the participant was inside: the others may then have
// continued without waiting. It fails with ErrLost also if another client has removed the
// znode of the participant, with ErrLost and ErrClosed after the Manager was closed, and
// with ErrNotHeld if the participant is not inside.
func (b *DoubleBarrier) Leave(ctx context.Context) error {
	if b.err != nil {
		return opError("leave", b.path, b.err)
	}
	b.mu.Lock()
	p := b.in
	if b.phase != inside {
		defer b.mu.Unlock()
		return opError("leave", b.path, fmt.Errorf("%w: this participant is %s", ErrNotHeld, phaseNames[b.phase]))
	}
	b.phase, b.in = leaving, nil
	b.mu.Unlock()

	there, err := p.Leave(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.phase = outside
	if err != nil {
		err = b.counted(there, err)
	}
	return opError("leave", b.path, err)
}

// Do enters, calls fn, and leaves when fn returns. fn's context is derived from ctx. It
// also ends, with a cause, when the session is lost (ErrLost: before the others can
// continue without this participant) or the Manager is closed (ErrLost and ErrClosed). Do
// returns the error of fn, joined with the error of Leave. If Enter fails, Do returns the
// error of Enter and does not call fn. If fn panics, Do does not wait for the others.
// Manager.Close waits for fn while the session is proven alive.
func (b *DoubleBarrier) Do(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	p, err := b.enter(ctx)
	if err != nil {
		return opError("enter", b.path, err)
	}
	returned := false
	defer func() {
		if !returned {
			at, cancel := context.WithCancel(ctx)
			cancel()
			_ = b.Leave(at) // the panic says more than its error could
			return
		}
		if left := b.Leave(ctx); left != nil {
			err = errors.Join(err, left)
		}
	}()
	done, err := p.Session().Busy()
	if err != nil {
		returned = true
		return nil // Leave says why
	}
	defer done()
	held, cancel := context.WithCancelCause(ctx)
	defer cancel(ErrReleased)
	stop, err := znode.NotifyLoss(p.Session(), cancel)
	if err != nil {
		returned = true
		return nil // Leave says why
	}
	defer stop()
	err = fn(held)
	returned = true
	return err
}
