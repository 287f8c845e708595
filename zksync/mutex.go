package zksync

import (
	"context"
	"sync"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/line"
)

// A Mutex is a mutual exclusion lock that holds between processes: of all goroutines
// that use the same path on the same ensemble, at most one holds the lock at any
// time. Waiters are served in the order of their arrival, with one exception: the
// goroutines that share a value take turns among themselves for a bounded time before
// another process has its turn.
//
// On the server it is the directory path with a child for each process in line, in
// the layout of Curator's InterProcessMutex and go-zookeeper's Lock. A Mutex and
// these locks exclude each other, and so do a Mutex and ZooKeeper's lock recipe. A
// Mutex and kazoo's Lock exclude each other with an option of kazoo or with
// WithLayout; see docs/migrating.md. The algorithm is the lock recipe of the
// ZooKeeper documentation. The data of the directory belongs to the lock and is
// overwritten: keep data of your own in another znode.
//
// A Mutex may be shared by goroutines, and used again after any error. It must not be
// copied. Like a sync.Mutex it is not reentrant, and one goroutine may lock it and
// another may unlock it.
type Mutex struct {
	path string
	cfg  config
	err  error
	in   line.LocalQueue

	mu   sync.Mutex
	held *line.Hold
}

// NewMutex returns the lock at path, which is created when it is first used.
// It does no I/O and returns no error: an invalid path or option is reported by
// the first call.
func NewMutex(m *session.Manager, path string, opts ...MutexOption) *Mutex {
	cfg, err := newConfig("Mutex", opts)
	if err == nil {
		err = session.CheckPath(path)
	}
	m.ExpectHolds()
	mu := &Mutex{path: path, cfg: cfg, err: err}
	mu.in.Linger = cfg.linger
	mu.in.Line = &line.Line{Manager: m, Dir: cfg.layout.directory(path), Rule: line.LockRule, Class: line.Exclusive, Op: "lock", Name: cfg.layout.names().Lock, Data: cfg.identity()}
	return mu
}

// Lock waits until the lock is held. When ctx ends first, nothing is held, no znode stays
// behind, and Lock returns the error of ctx. After a lost connection or session Lock
// continues to wait: its contender keeps its position in line, or joins the line again if
// the session was lost. Lock fails with ErrClosed when the Manager is closed, and with
// ErrLost if another client removes the znode of the contender.
//
// Lock does not report a loss of the lock while it is held: only Unlock does. Use
// LockContext to learn of a loss at once.
func (m *Mutex) Lock(ctx context.Context) error {
	h, err := m.acquire(ctx)
	if err != nil {
		return opError("lock", m.path, err)
	}
	m.hold(h)
	return nil
}

// LockContext is Lock with a context for the time that the lock is held. It is
// derived from ctx, carries the fencing token (see Token), and ends, with a cause,
// when the lock is unlocked (ErrReleased), when it is lost (ErrLost: before the
// server can give it to another process, unless its znode was removed by force), when
// the Manager is closed (ErrLost and ErrClosed), or when ctx ends. The end of ctx
// does not unlock: call Unlock in any case.
func (m *Mutex) LockContext(ctx context.Context) (context.Context, error) {
	held, _, err := m.lockContext(ctx)
	return held, opError("lock", m.path, err)
}

func (m *Mutex) lockContext(ctx context.Context) (context.Context, *line.Hold, error) {
	h, err := m.acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	held := h.Context(ctx)
	m.hold(h)
	return held, h, nil
}

func (m *Mutex) acquire(ctx context.Context) (*line.Hold, error) {
	if m.err != nil {
		return nil, m.err
	}
	if ctx.Err() != nil {
		return nil, session.Cancelled(ctx)
	}
	ctx, cancel := m.cfg.bound(ctx)
	defer cancel()
	return m.in.Acquire(ctx)
}

func (m *Mutex) hold(h *line.Hold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = h
}

// TryLock acquires the lock if no other caller holds it or is in line for it, and
// reports whether it did. It is not an error if another caller holds the lock.
// TryLock takes one round trip to the server, or three if it finds other contenders:
// the last one deletes the znode of the attempt. It fails like Lock.
func (m *Mutex) TryLock(ctx context.Context) (bool, error) {
	h, err := m.try(ctx)
	if h == nil {
		return false, opError("trylock", m.path, err)
	}
	m.hold(h)
	return true, nil
}

// TryLockContext is TryLock with the context of LockContext, which is nil if
// the lock was not taken.
func (m *Mutex) TryLockContext(ctx context.Context) (context.Context, bool, error) {
	h, err := m.try(ctx)
	if h == nil {
		return nil, false, opError("trylock", m.path, err)
	}
	held := h.Context(ctx)
	m.hold(h)
	return held, true, nil
}

func (m *Mutex) try(ctx context.Context) (*line.Hold, error) {
	if m.err != nil {
		return nil, m.err
	}
	if ctx.Err() != nil {
		return nil, session.Cancelled(ctx)
	}
	return m.in.TryAcquire(ctx)
}

// Unlock releases the lock, and waits for the server's answer for as long as the
// session is proven alive; from then on the release goes on in the background, and
// Unlock returns nil. It returns ErrLost if the lock had been lost, so that another
// process may have held the lock at the same time; ErrLost and ErrClosed after the
// Manager was closed; and ErrNotHeld if this value holds no lock. A lock that was
// lost keeps this value occupied until Unlock has said so.
func (m *Mutex) Unlock() error {
	m.mu.Lock()
	h := m.held
	m.mu.Unlock()
	return opError("unlock", m.path, m.unlock(h))
}

// unlock ends a hold, if it is still the hold of this value.
func (m *Mutex) unlock(h *line.Hold) error {
	m.mu.Lock()
	ours := h != nil && m.held == h
	if ours {
		m.held = nil
	}
	m.mu.Unlock()
	if !ours {
		return ErrNotHeld
	}
	return m.in.Release(h)
}

// Do calls fn with the lock held, and unlocks when fn returns or panics. fn's context
// is the context that LockContext returns. Do returns the error of fn, joined with
// ErrLost if the lock was lost before fn returned, and with ErrNotHeld if the lock
// was unlocked before: Do never unlocks a lock that was acquired later. Otherwise Do
// fails like Lock, without having called fn. Manager.Close waits for fn while the
// session is proven alive.
func (m *Mutex) Do(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	held, h, err := m.lockContext(ctx)
	if err != nil {
		return opError("lock", m.path, err)
	}
	return under(held, h.Session(), fn, func() error { return opError("unlock", m.path, m.unlock(h)) })
}
