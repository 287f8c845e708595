package zksync

import (
	"context"
	"fmt"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/line"
)

// A Semaphore limits how many units the callers of all processes that use the same
// path on the same ensemble hold at the same time. A request is for any number of
// units at once, and gets all of them or none. Requests are served in the order of
// their arrival: a request for many units is not overtaken by requests for fewer
// units. There are two exceptions. The goroutines that share a value have one position in line. While
// a request of one of them waits, the others have none, and join the line when it has its units.
// And a request that finds a unit taken out of turn, by a Curator whose session has ended meanwhile, goes
// to the end of the line.
//
// On the server it is two directories below path, in the layout of Curator's
// InterProcessSemaphoreV2, with which it shares its units: leases, with a child for
// each held unit, and locks, a Mutex whose holder alone may create leases. Curator takes
// several units one by one, so two Curators may wait for each other's units for ever.
// WithLayout makes a Semaphore count together with kazoo's Semaphore instead. Give all
// values at a path the same n. The data of the directories belongs to the semaphore. A hold of more
// than 100 ms costs one request for each unit, to watch its znode.
//
// A Semaphore must not be copied.
//
// # Releases
//
// Release(k) ends one of the acquisitions of k units that a value holds, and cannot
// know which. So when one acquisition is lost, Release(k) returns ErrLost for each
// acquisition of k units that is held through the same value at that time, and until
// all of them have been released no caller gets k units through that value. Do releases
// the units that it acquired, and Release never releases the units of a Do.
type Semaphore struct {
	_ noCopy
	primitive
	units *line.Units
}

// NewSemaphore returns the semaphore of n units at path, which is created when it is
// first used. The first call reports an n below 1 (ErrInvalidOption and ErrInvalidCount).
// With WithSizeFrom an operator sets n. With LayoutKazoo, path must not be "/" (session.ErrInvalidPath).
func NewSemaphore(m *session.Manager, path string, n int, opts ...SemaphoreOption) *Semaphore {
	p := newPrimitive("Semaphore", m, path, opts)
	if p.err == nil && n < 1 {
		p.err = fmt.Errorf("%w: %w: a semaphore of %d, want at least 1", ErrInvalidOption, ErrInvalidCount, n)
	}
	if p.err == nil && path == "/" && p.cfg.layout == LayoutKazoo {
		p.err = fmt.Errorf(`%w: kazoo would count the line in "/" as a unit, want a semaphore as "/app/semaphore"`, session.ErrInvalidPath)
	}
	m.ExpectHolds()
	return &Semaphore{primitive: p, units: line.NewUnits(m, path, p.cfg.layout.names(), n, p.cfg.sizeFrom, p.cfg.identity())}
}

// Acquire waits until it holds n units. When ctx ends, or when a connection or a session
// is lost, it behaves like Mutex.Lock. Acquire fails at once with ErrTooMany if the
// semaphore has fewer than n units in all, with ErrInvalidCount if n is below 1, and with
// session.ErrTooLarge if so many znodes do not fit into one transaction. Otherwise it
// fails like Mutex.Lock.
//
// Call Release(n) for each Acquire(n). Acquire does not report a loss of held units:
// only Release does. Use AcquireContext to learn of a loss at once.
func (s *Semaphore) Acquire(ctx context.Context, n int) error {
	_, _, err := s.acquire(ctx, n, true)
	return s.opError("acquire", err)
}

// AcquireContext is Acquire with a context like the one of Mutex.LockContext. Its token
// (see Token) identifies this hold and fences nothing. It ends with ErrLost when any n
// units that are held through this value are lost. Release(n) ends the contexts of all
// acquisitions of n units of this value when the last of them has been released
// (ErrReleased), and none before: a value that is never without a hold keeps all of them, unless ctx
// ends. Do ends its context when its function returns.
func (s *Semaphore) AcquireContext(ctx context.Context, n int) (context.Context, error) {
	g, pl, err := s.acquire(ctx, n, true)
	return pl.Context(ctx, g), s.opError("acquire", err)
}

// TryAcquire acquires n units if they are free and no other caller is in line, and
// reports whether it did. If it returns false without an error, no znode is left. It fails like Acquire
// and like Mutex.TryLock.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (bool, error) {
	g, _, err := s.acquire(ctx, n, false)
	return g != nil, s.opError("tryacquire", err)
}

// TryAcquireContext is TryAcquire with the context of AcquireContext, which is
// nil if nothing was taken.
func (s *Semaphore) TryAcquireContext(ctx context.Context, n int) (context.Context, bool, error) {
	g, pl, err := s.acquire(ctx, n, false)
	return pl.Context(ctx, g), g != nil, s.opError("tryacquire", err)
}

// Release gives back the n units of one acquisition of n, and waits for the server's
// answer as Mutex.Unlock does. It returns ErrLost if n units that are held through this
// value were lost; ErrLost and ErrClosed after the Manager was closed; ErrNotHeld, and
// changes nothing, if this value has no acquisition of exactly n; and ErrInvalidCount if
// n is below 1.
func (s *Semaphore) Release(n int) error {
	err := s.check(n)
	if err == nil {
		err = s.units.Release(n)
	}
	return s.released(n, err)
}

// released returns the result of a release of n units.
func (s *Semaphore) released(n int, err error) error {
	if err == ErrNotHeld {
		err = fmt.Errorf("%w: this value has no acquisition of %d units", err, n)
	}
	return s.opError("release", err)
}

// Do calls fn with n units held, and releases them when fn returns or panics. fn's context
// is the context that AcquireContext returns, except that it ends when fn returns. Do
// returns the error of fn, joined with ErrLost if n units that are held through this value
// were lost. Otherwise it behaves like Mutex.Do.
func (s *Semaphore) Do(ctx context.Context, n int, fn func(ctx context.Context) error) error {
	return s.under(ctx, "acquire", fn, func(wait context.Context) (ownHold, error) {
		g, pl, err := s.acquire(wait, n, true)
		if err != nil {
			return ownHold{}, err
		}
		held, release := pl.Own(ctx, g)
		return ownHold{held, g.Session(), func() error { return s.released(n, release()) }}, nil
	})
}

// check returns the errors that can be known without a request.
func (s *Semaphore) check(n int) error {
	switch err := s.invalid(); {
	case err != nil:
		return err
	case n < 1:
		return fmt.Errorf("%w: %d units, want at least 1", ErrInvalidCount, n)
	}
	return nil
}

// acquire acquires n units, or returns no grant if patient is false and they are not free.
func (s *Semaphore) acquire(ctx context.Context, n int, patient bool) (*line.Grant, *line.Pool, error) {
	if err := ready(ctx, s.check(n)); err != nil {
		return nil, nil, err
	}
	if patient {
		var cancel context.CancelFunc
		ctx, cancel = s.cfg.bound(ctx)
		defer cancel()
	}
	return s.units.Acquire(ctx, n, patient)
}

// Contenders returns a Contender for each unit that is held, in the order of
// acquisition, and then the contenders that wait in line, as of the time of the call:
// see Mutex.Contenders. A contender in line does not say how many units it waits for. A Curator that is
// first in line has its unit in the list while it waits, too: no client can tell that it does not hold it.
func (s *Semaphore) Contenders(ctx context.Context) ([]Contender, error) {
	return s.listContenders(ctx, "contenders", s.units.List, -1)
}
