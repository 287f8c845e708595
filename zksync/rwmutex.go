package zksync

import (
	"context"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/line"
)

// An RWMutex is a lock that holds between processes: of all callers that use the same path on the same ensemble,
// either any number of readers or one writer hold it. It is fair: a reader waits only for the writers that came
// before it, and a writer waits for all callers that came before it. So readers do not overtake a waiting writer,
// with one exception: the readers of one process share a contender. A reader that comes while other readers of its
// process wait joins them, and so does a reader that comes within 50 ms after these readers got the lock. Writers of
// one process take turns among themselves like the goroutines that share a Mutex.
//
// On the server an RWMutex is the directory path with a child for each contender, in the layout of Curator's
// InterProcessReadWriteLock. An RWMutex and Curator's lock exclude each other. An RWMutex sees kazoo's ReadLock and
// WriteLock, too; see docs/migrating.md for the options with which kazoo sees an RWMutex. The algorithm is the shared
// lock recipe of the ZooKeeper documentation. The data of the directory belongs to the lock and is overwritten: keep
// data of your own in another znode.
//
// An RWMutex may be shared by goroutines, and used again after any error. It must not
// be copied. Like a sync.RWMutex it is not reentrant, and a read lock cannot become a
// write lock; Downgrade turns a write lock into a read lock.
//
// # Releases
//
// Unlock ends the one write lock that a value holds. RUnlock ends one of the read
// locks that the value holds, and cannot know which. So when a read lock is lost,
// RUnlock returns ErrLost for each read lock that is held through the same value at
// that time, and until all of them have been released no reader gets the lock through
// that value.
//
// Do and RDo release the lock that they acquired, and RUnlock never releases the lock
// of an RDo.
type RWMutex struct {
	w Mutex
	r *line.Readers
}

// NewRWMutex returns the lock at path, which is created when it is first used.
// It does no I/O and returns no error: an invalid path or option is reported by
// the first call.
func NewRWMutex(m *session.Manager, path string, opts ...RWMutexOption) *RWMutex {
	cfg, err := newConfig("RWMutex", opts)
	if err == nil {
		err = session.CheckPath(path)
	}
	m.ExpectHolds()
	rw := &RWMutex{}
	rw.w.path, rw.w.cfg, rw.w.err = path, cfg, err
	dir := cfg.layout.directory(path)
	rw.w.in.Line = &line.Line{Manager: m, Dir: dir, Rule: line.SharedRule, Class: line.Writer, Op: "lock", Name: cfg.layout.names().Writer, Data: cfg.identity()}
	rw.r = line.NewReaders(&line.Line{Manager: m, Dir: dir, Rule: line.SharedRule, Class: line.Reader, Op: "rlock", Name: cfg.layout.names().Reader, Data: cfg.identity()})
	return rw
}

// Lock waits until the write lock is held: then no other caller holds a read lock or the write lock. When ctx ends
// first, nothing is held, no znode stays behind, and Lock returns the error of ctx. After a lost connection or
// session Lock continues to wait: its contender keeps its position in line, or joins the line again if the session
// was lost. Lock fails with ErrClosed when the Manager is closed, and with ErrLost if another client removes the
// znode of the contender.
//
// Lock does not report a loss of the lock while it is held: only Unlock does. Use
// LockContext to learn of a loss at once.
func (rw *RWMutex) Lock(ctx context.Context) error { return rw.w.Lock(ctx) }

// LockContext is Lock with a context for the time that the write lock is held. It is
// derived from ctx, carries the fencing token (see Token), and ends, with a cause,
// when the lock is unlocked or downgraded (ErrReleased), when it is lost (ErrLost:
// before the server can give it to another process, unless its znode was removed by
// force), when the Manager is closed (ErrLost and ErrClosed), or when ctx ends. The
// end of ctx does not unlock: call Unlock in any case.
//
// The token of a writer is greater than the tokens of all earlier readers and
// writers.
func (rw *RWMutex) LockContext(ctx context.Context) (context.Context, error) {
	return rw.w.LockContext(ctx)
}

// TryLock acquires the write lock if no other caller holds a lock or is in line for
// one, and reports whether it did. It is not an error if another caller holds a lock.
// TryLock takes one round trip to the server, or three if it finds other contenders:
// the last one deletes the znode of the attempt. It fails like Lock.
func (rw *RWMutex) TryLock(ctx context.Context) (bool, error) { return rw.w.TryLock(ctx) }

// TryLockContext is TryLock with the context of LockContext, which is nil if
// the lock was not taken.
func (rw *RWMutex) TryLockContext(ctx context.Context) (context.Context, bool, error) {
	return rw.w.TryLockContext(ctx)
}

// Unlock releases the write lock, and waits for the server's answer for as long as
// the session is proven alive; from then on the release goes on in the background,
// and Unlock returns nil. It returns ErrLost if the lock had been lost, so that
// another process may have held the lock at the same time; ErrLost and ErrClosed
// after the Manager was closed; and ErrNotHeld if this value holds no write lock. A
// lock that was lost keeps this value from being locked again until Unlock has said
// so.
func (rw *RWMutex) Unlock() error { return rw.w.Unlock() }

// Do calls fn with the write lock held, and unlocks when fn returns or panics. fn's context is the context that
// LockContext returns. Do returns the error of fn, joined with ErrLost if the lock was lost before fn returned,
// and with ErrNotHeld if the lock was unlocked or downgraded before: Do never unlocks a lock that was acquired
// later. Otherwise Do fails like Lock, without having called fn. Manager.Close waits for fn while the session is
// proven alive.
func (rw *RWMutex) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return rw.w.Do(ctx, fn)
}

// RLock waits until a read lock is held: other callers may then hold read locks too,
// but no caller holds the write lock. It fails like Lock, and leaves no znode behind
// either. Call RUnlock for each RLock.
func (rw *RWMutex) RLock(ctx context.Context) error {
	_, err := rw.rlock(ctx)
	return opError("rlock", rw.w.path, err)
}

// RLockContext is RLock with a context for the time that the read lock is held. It is
// derived from ctx and carries the fencing token (see Token), which readers may share
// and which is greater than the token of every earlier writer. It ends, with a cause,
// when a read lock that is held through this value is lost (ErrLost), when the
// Manager is closed (ErrLost and ErrClosed), or when ctx ends, which does not unlock.
//
// Since RUnlock does not say which of the readers has left, it ends the contexts of
// all of them when the last one has (ErrReleased), and none before. RDo ends its
// context when its own function returns.
func (rw *RWMutex) RLockContext(ctx context.Context) (context.Context, error) {
	st, err := rw.rlock(ctx)
	if err != nil {
		return nil, opError("rlock", rw.w.path, err)
	}
	held, _ := rw.r.Context(ctx, st)
	return held, nil
}

func (rw *RWMutex) rlock(ctx context.Context) (*line.Grant, error) {
	if rw.w.err != nil {
		return nil, rw.w.err
	}
	if ctx.Err() != nil {
		return nil, session.Cancelled(ctx)
	}
	ctx, cancel := rw.w.cfg.bound(ctx)
	defer cancel()
	return rw.r.Acquire(ctx)
}

// TryRLock acquires a read lock if no writer holds the lock or is in line for it, and
// reports whether it did. It is not an error if a writer holds the lock. TryRLock
// takes one round trip to the server, none if other goroutines read through this
// value, and three if it finds a writer: the last one deletes the znode of the
// attempt. It fails like RLock.
func (rw *RWMutex) TryRLock(ctx context.Context) (bool, error) {
	st, err := rw.tryRLock(ctx)
	return st != nil, opError("tryrlock", rw.w.path, err)
}

// TryRLockContext is TryRLock with the context of RLockContext, which is nil if
// the lock was not taken.
func (rw *RWMutex) TryRLockContext(ctx context.Context) (context.Context, bool, error) {
	st, err := rw.tryRLock(ctx)
	if st == nil {
		return nil, false, opError("tryrlock", rw.w.path, err)
	}
	held, _ := rw.r.Context(ctx, st)
	return held, true, nil
}

func (rw *RWMutex) tryRLock(ctx context.Context) (*line.Grant, error) {
	if rw.w.err != nil {
		return nil, rw.w.err
	}
	if ctx.Err() != nil {
		return nil, session.Cancelled(ctx)
	}
	return rw.r.TryAcquire(ctx)
}

// RUnlock releases one read lock. If it is the last read lock that shares a znode,
// RUnlock waits for the server's answer as Unlock does. It returns ErrLost if a read
// lock that is held through this value was lost; ErrLost and ErrClosed after the
// Manager was closed; and ErrNotHeld if this value holds no read lock.
func (rw *RWMutex) RUnlock() error {
	return opError("runlock", rw.w.path, rw.r.Release())
}

// RDo calls fn with a read lock held, and releases it when fn returns or panics. fn's context is the
// context that RLockContext returns, except that it ends when fn returns. RDo returns the error of fn,
// joined with ErrLost if a read lock that is held through this value was lost, and otherwise fails like
// RLock, without having called fn. Manager.Close waits for fn while the session is proven alive.
func (rw *RWMutex) RDo(ctx context.Context, fn func(ctx context.Context) error) error {
	st, err := rw.rlock(ctx)
	if err != nil {
		return opError("rlock", rw.w.path, err)
	}
	held, end := rw.r.Context(ctx, st)
	own := rw.r.Own(st)
	return under(held, st.Session(), fn, func() error {
		err := opError("runlock", rw.w.path, rw.r.ReleaseOwn(own))
		end(ErrReleased)
		return err
	})
}
