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

// A DoubleBarrier lets a group of participants begin and end something
// together: Enter returns when n of them have come, and Leave when all of them are
// done. A value is one participant; the same barrier serves the next round at once.
//
//	b := zksync.NewDoubleBarrier(m, "/jobs/42", 3)
//	if err := b.Enter(ctx); err != nil { ... } // until all three are here
//	// the work
//	if err := b.Leave(ctx); err != nil { ... } // until all three are done
//
// Enter alone is the synchronising queue of the ZooKeeper documentation: members
// gather, and all start when the last has come.
//
// If more than n come before the barrier opens, all of them are in that round;
// who comes later waits for the next one, which begins when everybody of this one
// has left. Participants that crash are not waited for any longer than their
// sessions last, and a session timeout more.
//
// On the server it is the directory path with an ephemeral child for each
// participant, and the child "ready" while a round goes on, as with Curator's
// DistributedDoubleBarrier and kazoo's DoubleBarrier, which take part in the same
// rounds; children with other names than theirs and ours do not count. The
// algorithm is the double barrier recipe of the ZooKeeper documentation, but for
// two things. Nobody lists the participants except who may be the last one to come:
// the others count by what their own request tells of the directory, and wait for
// one znode. And whatever changes the barrier also writes an empty value to the
// directory, whose version then tells rounds and decisions of different times
// apart. So the directory must hold no data of anybody's, data watches on it see
// the changes, and what is promised about crashes and about those who give up holds
// among participants of this package, which do that.
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

// Enter waits until n participants are there, this one included. While a round
// goes on that began without it, it waits for the end of that first.
//
// When ctx ends before, this participant is taken back, and once that is done
// nobody passes by counting it. Enter waits for that, though not for more than a
// second; if no server can be reached by then it is done later, unless the session
// ends anyway. If the barrier has opened meanwhile for this participant too, Enter
// returns nil all the same: it is inside. The error of a wait that was ended wraps
// a *CountError, which says how many were there. After three seconds, and then after
// times that grow, the participants that are there are logged.
//
// A lost connection makes it wait for longer, and so does a lost session, under
// the next one; if the round began just before that loss, it enters the round
// after. Enter fails with ErrBusy unless this participant is outside, with
// ErrIDInUse if another participant has its id, with ErrLost if somebody removes
// its znode, and with ErrClosed when the Manager is closed.
//
// What happens while it is inside, only Leave tells; see Do.
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

// Leave waits until all participants of the round have left. Whatever it
// returns, this participant has left then or is about to, and may enter again.
//
// When ctx ends before, only the wait for the others ends: leaving itself is not
// taken back. Leave waits for its answer for up to a second from then on, and if no
// server can be reached it is done later. The error of a wait that was ended wraps
// a *CountError, which says how many were still inside.
//
// A lost connection makes it wait for longer. Leave fails with ErrLost when the
// session is lost, or was while it was inside, so that others may have gone on
// without waiting; with ErrLost also if somebody has removed its znode; with ErrLost
// and ErrClosed after the Manager was closed; with ErrNotHeld if this participant is
// not inside.
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

// Do enters, calls fn, and leaves when it returns. fn's context is derived from
// ctx, and ends, with a cause, also when the session is lost (ErrLost: before the
// others can go on without this participant) or the Manager is closed (ErrLost and
// ErrClosed). Do returns what fn returned, joined with the error of Leave, and
// otherwise fails like Enter, without having called fn. If fn panics, the others are
// not waited for. Manager.Close waits for fn while the session is proven alive.
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
