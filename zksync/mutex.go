package zksync

import (
	"context"

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
// the layout of Curator's InterProcessMutex and go-zookeeper's Lock. A Mutex excludes
// these locks and ZooKeeper's lock recipe, and kazoo's Lock with an option of kazoo or
// with WithLayout; see docs/migrating.md. The data of the directory belongs to the lock.
// A Mutex and an RWMutex at one path do not exclude each other: give primitives of different
// kinds different paths.
//
// ZooKeeper numbers the children of a directory up to 2147483647. When the numbers are used up,
// a contender waits until the directory has no child, and creates it anew. If only children of
// other programs are left, Lock and TryLock fail with zk.ErrNotEmpty, and an operator must
// delete these children.
//
// A Mutex must not be copied. Like a sync.Mutex it is not reentrant, and one goroutine
// may lock it and another may unlock it.
type Mutex struct{ exclusive }

// An exclusive is a lock of which one value holds at most one hold at a time. It has the
// methods that Mutex and RWMutex share.
type exclusive struct {
	primitive
	in   line.LocalQueue
	held line.SoleHold
}

// NewMutex returns the lock at path, which is created when it is first used.
func NewMutex(m *session.Manager, path string, opts ...MutexOption) *Mutex {
	m.ExpectHolds()
	mu := &Mutex{exclusive{primitive: newPrimitive("Mutex", m, path, opts)}}
	names := mu.cfg.layout.names()
	mu.in.Linger, mu.in.Lost = mu.cfg.linger, mu.held.Lost
	mu.in.Line = &line.Line{Manager: m, Dir: names.Directory(path), Rule: line.LockRule, Class: line.Exclusive, Op: "lock", Name: names.Lock, Data: mu.cfg.identity()}
	return mu
}

// Lock waits until the lock is held; of an RWMutex, the write lock. When ctx ends first,
// nothing is held, no znode stays behind, and Lock returns the error of ctx. After a lost
// connection Lock continues to wait, and keeps its position in line. After a lost session
// it joins the line again. Lock fails with ErrClosed when the Manager is closed, and with
// ErrLost if another client removes the znode of the contender.
//
// Lock does not report a loss of the lock while it is held: only Unlock does. Use
// LockContext to learn of a loss at once.
func (m *exclusive) Lock(ctx context.Context) error {
	_, _, err := m.acquire(ctx, nil, true)
	return m.opError("lock", err)
}

// LockContext is Lock with a context for the time that the lock is held. It is
// derived from ctx, carries the fencing token (see Token), and ends, with a cause,
// when the lock is unlocked or downgraded (ErrReleased), when it is lost (ErrLost: before
// the server can give it to another process, unless its znode was removed by force), when
// the Manager is closed (ErrLost and ErrClosed), or when ctx ends. The end of ctx
// does not unlock: call Unlock in any case.
func (m *exclusive) LockContext(ctx context.Context) (context.Context, error) {
	held, _, err := m.acquire(ctx, ctx, true)
	return held, m.opError("lock", err)
}

// TryLock acquires the lock if no other caller holds this lock or is in line for
// it, and reports whether it did. It takes one round trip to the server, or three if it
// finds other contenders, and up to two more at the first use of a path. If it returns
// false without an error, no znode is left. It fails like Lock, and with zk.ErrNoAuth if
// the server refuses to delete the znode of the attempt, which then stays until the session
// ends. A znode of an earlier call of this process that is still being deleted in the
// background, after a Lock that was cancelled or at the end of a linger, counts as another
// caller, and so does a hold of this value that was lost and not unlocked.
func (m *exclusive) TryLock(ctx context.Context) (bool, error) {
	_, g, err := m.acquire(ctx, nil, false)
	return g != nil, m.opError("trylock", err)
}

// TryLockContext is TryLock with the context of LockContext, which is nil if
// the lock was not acquired.
func (m *exclusive) TryLockContext(ctx context.Context) (context.Context, bool, error) {
	held, g, err := m.acquire(ctx, ctx, false)
	return held, g != nil, m.opError("trylock", err)
}

// acquire acquires the lock, or returns no grant if patient is false and it is not free.
// It derives the context of the hold from parent, if that is not nil.
func (m *exclusive) acquire(ctx, parent context.Context, patient bool) (held context.Context, g *line.Grant, err error) {
	if err := ready(ctx, m.invalid()); err != nil {
		return nil, nil, err
	}
	if patient {
		wait, cancel := m.cfg.bound(ctx)
		defer cancel()
		g, err = m.in.Acquire(wait)
	} else {
		g, err = m.in.TryAcquire(ctx)
	}
	if g == nil {
		return nil, nil, err
	}
	// Before another goroutine can unlock: Unlock ends this context.
	if parent != nil {
		held = g.Context(parent)
	}
	m.held.Set(g)
	return held, g, nil
}

// Unlock releases the lock, and waits for the server's answer for as long as the
// session is proven alive; from then on the release goes on in the background, and
// Unlock returns nil. It returns ErrLost if the lock had been lost, so that another
// process may have held the lock at the same time; ErrLost and ErrClosed after the
// Manager was closed; and ErrNotHeld if this value does not hold the lock. A lock that
// was lost keeps this value from being locked again until Unlock has said so. If the
// servers refuse the deletion of the znode, Unlock returns the refusal, and the znode
// keeps others waiting until the session ends, another client deletes it, or the missing
// permission is given: the deletion is tried again, at intervals that grow to five minutes. If the
// connection is lost before the answer, Unlock cannot tell its own deletion of the znode from
// a removal by another client, of which it had not heard before: it returns nil.
func (m *exclusive) Unlock() error {
	err := m.invalid()
	if err == nil {
		err = m.held.End(m.held.Get(), m.in.Release)
	}
	return m.opError("unlock", err)
}

// Do calls fn with the lock held, and unlocks when fn returns or panics. fn's context
// is the context that LockContext returns. Do returns the error of fn, joined with
// ErrLost if the lock was lost before fn returned, and with ErrNotHeld if the lock
// was unlocked or downgraded before: Do never unlocks a lock that was acquired later.
// Otherwise Do fails like Lock, without having called fn, and with ErrInvalidOption if fn
// is nil. If the session is lost before fn was called, Do joins the line again.
// Manager.Close waits for fn as long as Close says. An fn that
// goes on for seconds after its context has ended is logged.
func (m *exclusive) Do(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	return m.under(ctx, "lock", fn, func(wait context.Context) (ownHold, error) {
		held, g, err := m.acquire(wait, ctx, true)
		if err != nil {
			return ownHold{}, err
		}
		return ownHold{held, g.Session(), func() error { return m.opError("unlock", m.held.End(g, m.in.Release)) }}, nil
	})
}

// Contenders returns the holders and then the waiting contenders in order, of all
// processes and of all clients with which the lock excludes, as of the time of the
// call. Goroutines that share a value, or that read together, are one contender. If
// contenders leave during each of a few attempts, because they hold for less than a round
// trip, the result lacks the contenders that have left, and may lack contenders that have
// joined since.
// Contenders commits a transaction without effect first (see session.Session.SyncQuorum),
// and is repeated over lost connections and sessions until ctx ends.
func (m *exclusive) Contenders(ctx context.Context) ([]Contender, error) {
	return m.listContenders(ctx, "contenders", m.in.List, -1)
}
