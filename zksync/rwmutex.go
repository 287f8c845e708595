package zksync

import (
	"context"
	"fmt"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/line"
)

// An RWMutex is a lock that holds between processes: of all callers that use the same
// path on the same ensemble, either any number of readers or one writer hold it. It is
// fair: a reader waits only for the writers that came before it, and a writer waits for
// all callers that came before it. There is one exception: the readers of one process
// share a contender, also a reader that comes while other readers of its process wait,
// or within 50 ms after these readers got the lock. Writers of one process take turns
// among themselves like the goroutines that share a Mutex.
//
// On the server an RWMutex is the directory path with a child for each contender, in the
// layout of Curator's InterProcessReadWriteLock, which it excludes. It sees kazoo's
// ReadLock and WriteLock, too; see docs/migrating.md. The data of the directory belongs
// to the lock. A Mutex and an RWMutex at one path do not exclude each other: give primitives of different
// kinds different paths. When the numbers of its children are used up (see Mutex), readers wait for
// readers, too, and TryRLock beside other readers returns false.
//
// An RWMutex must not be copied. Like a sync.RWMutex it is not reentrant, and a read lock
// cannot become a write lock; Downgrade turns a write lock into a read lock.
//
// # Releases
//
// Unlock ends the one write lock that a value holds. RUnlock ends one of the read
// locks that the value holds, and cannot know which. So when a read lock is lost,
// RUnlock returns ErrLost for each read lock that is held through the same value at
// that time, and until all of them have been released no reader gets the lock through
// that value. Do and RDo release the lock that they acquired, and RUnlock never releases
// the lock of an RDo.
type RWMutex struct {
	exclusive // the write lock
	r         *line.Readers
}

// NewRWMutex returns the lock at path, which is created when it is first used.
func NewRWMutex(m *session.Manager, path string, opts ...RWMutexOption) *RWMutex {
	m.ExpectHolds()
	rw := &RWMutex{exclusive: exclusive{primitive: newPrimitive("RWMutex", m, path, opts)}}
	names, id := rw.cfg.layout.names(), rw.cfg.identity()
	dir := names.Directory(path)
	rw.in.Lost = rw.held.Lost
	rw.in.Line = &line.Line{Manager: m, Dir: dir, Rule: line.SharedRule, Class: line.Writer, Op: "lock", Name: names.Writer, Data: id}
	rw.r = line.NewReaders(&line.Line{Manager: m, Dir: dir, Rule: line.SharedRule, Class: line.Reader, Op: "rlock", Name: names.Reader, Data: id})
	return rw
}

// RLock waits until a read lock is held: other callers may then hold read locks too,
// but no caller holds the write lock. It fails like Lock, and leaves no znode behind
// either. Call RUnlock for each RLock.
func (rw *RWMutex) RLock(ctx context.Context) error {
	_, err := rw.rlock(ctx, true)
	return rw.opError("rlock", err)
}

// RLockContext is RLock with a context like the one of LockContext. It ends with ErrLost
// when any read lock that is held through this value is lost. RUnlock ends the contexts of
// all readers of this value when the last of them has unlocked (ErrReleased), and none
// before: a value that is never without a reader keeps all of them, unless ctx ends. RDo ends its
// context when its function returns.
func (rw *RWMutex) RLockContext(ctx context.Context) (context.Context, error) {
	g, err := rw.rlock(ctx, true)
	return rw.context(ctx, g), rw.opError("rlock", err)
}

// context returns the context of a read lock, nil without one: the readers of a zero RWMutex are nil.
func (rw *RWMutex) context(ctx context.Context, g *line.Grant) context.Context {
	if g == nil {
		return nil
	}
	return rw.r.Context(ctx, g)
}

// rlock acquires a read lock, or returns no grant if patient is false and it is not free.
func (rw *RWMutex) rlock(ctx context.Context, patient bool) (*line.Grant, error) {
	if err := ready(ctx, rw.invalid()); err != nil {
		return nil, err
	}
	if !patient {
		return rw.r.TryAcquire(ctx)
	}
	ctx, cancel := rw.cfg.bound(ctx)
	defer cancel()
	return rw.r.Acquire(ctx)
}

// TryRLock acquires a read lock if no writer holds the lock or is in line for it, and
// reports whether it did. It takes one round trip to the server if no other caller is in line, two
// beside other readers, three if it finds a writer, up to two more at the first use of a path, and
// none if other goroutines have got the read lock through this value within the last 50 ms. If it
// returns false without an error, no znode is left. It fails like RLock and TryLock.
func (rw *RWMutex) TryRLock(ctx context.Context) (bool, error) {
	g, err := rw.rlock(ctx, false)
	return g != nil, rw.opError("tryrlock", err)
}

// TryRLockContext is TryRLock with the context of RLockContext, which is nil if
// the lock was not acquired.
func (rw *RWMutex) TryRLockContext(ctx context.Context) (context.Context, bool, error) {
	g, err := rw.rlock(ctx, false)
	return rw.context(ctx, g), g != nil, rw.opError("tryrlock", err)
}

// RUnlock releases one read lock. If it is the last read lock that shares a znode,
// RUnlock waits for the server's answer as Unlock does. It returns ErrLost if a read
// lock that is held through this value was lost; ErrLost and ErrClosed after the
// Manager was closed; and ErrNotHeld if this value holds no read lock.
func (rw *RWMutex) RUnlock() error {
	err := rw.invalid()
	if err == nil {
		err = rw.r.Release()
	}
	return rw.opError("runlock", err)
}

// RDo is Do with a read lock. fn's context is the context that RLockContext returns,
// except that it ends when fn returns. RDo returns the error of fn, joined with ErrLost if
// a read lock that is held through this value was lost.
func (rw *RWMutex) RDo(ctx context.Context, fn func(ctx context.Context) error) error {
	return rw.under(ctx, "rlock", fn, func(wait context.Context) (ownHold, error) {
		g, err := rw.rlock(wait, true)
		if err != nil {
			return ownHold{}, err
		}
		held, release := rw.r.Own(ctx, g)
		return ownHold{held, g.Session(), func() error { return rw.opError("runlock", release()) }}, nil
	})
}

// Downgrade turns the write lock that this value holds into a read lock, and no
// writer gets the lock in between. Call RUnlock in place of Unlock from then on.
//
// ctx must not end with the write lock: the context of its LockContext or Do, or a context
// derived from it, is refused with ErrInvalidOption, and the write lock is still held.
// Pass the context from before the lock, or context.WithoutCancel of the lock's context, which
// never ends.
//
// Downgrade fails with ErrNotHeld if this value holds no write lock. After any other error
// nothing is held, and no Unlock or RUnlock is needed: the lock had been lost
// (ErrLost), or Downgrade released it because ctx ended before the outcome was known,
// or because the server refused the request.
func (rw *RWMutex) Downgrade(ctx context.Context) error {
	_, err := rw.downgrade(ctx)
	return rw.opError("downgrade", err)
}

// DowngradeContext is Downgrade with a context like the one of RLockContext. Its
// token is the token of the write lock. The context of the write lock ends with
// ErrReleased.
func (rw *RWMutex) DowngradeContext(ctx context.Context) (context.Context, error) {
	g, err := rw.downgrade(ctx)
	return rw.context(ctx, g), rw.opError("downgrade", err)
}

// errOwnContext is the error of a Downgrade that would end its own ctx.
var errOwnContext = fmt.Errorf("%w: ctx is derived from the context of the write lock, which Downgrade ends, want the context from before the lock; the write lock is still held", ErrInvalidOption)

func (rw *RWMutex) downgrade(ctx context.Context) (reader *line.Grant, err error) {
	if err := rw.invalid(); err != nil {
		return nil, err
	}
	held := rw.held.Get()
	if held.Ends(ctx) {
		return nil, errOwnContext
	}
	err = rw.held.End(held, func(writer *line.Grant) (err error) {
		reader, err = rw.r.Downgrade(ctx, &rw.in, writer)
		return err
	})
	return reader, err
}
