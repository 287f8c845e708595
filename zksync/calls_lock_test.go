package zksync_test

import (
	"context"
	"sync"

	"github.com/go-zksync/toolkit/zksync"
)

// lockCalls are the blocking calls of Mutex, RWMutex and Semaphore.
var lockCalls = []blockingCall{
	{name: "Mutex.Lock", play: func(st *stage) play {
		mu := zksync.NewMutex(st.m, stagePath)
		return play{call: mu.Lock, undo: mu.Unlock}
	}},
	{name: "Mutex.Lock behind another", play: func(st *stage) play {
		theirs, mu := zksync.NewMutex(st.other, stagePath), zksync.NewMutex(st.m, stagePath)
		st.must(theirs.Lock(st.ctx))
		return play{call: mu.Lock, release: func() { st.must(theirs.Unlock()) }, undo: mu.Unlock}
	}},
	{name: "Mutex.Lock behind a goroutine", play: func(st *stage) play {
		mu := zksync.NewMutex(st.m, stagePath)
		st.must(mu.Lock(st.ctx))
		free := sync.OnceFunc(func() { _ = mu.Unlock() })
		return play{call: mu.Lock, release: free, undo: mu.Unlock, close: func() error { free(); return nil }}
	}},
	{name: "Mutex.Lock in a directory with data", play: func(st *stage) play {
		_ = st.srv.Create("/stage", nil)
		_ = st.srv.Create(stagePath, nil)
		st.must(st.srv.Set(stagePath, []byte("theirs")))
		mu := zksync.NewMutex(st.m, stagePath)
		return play{call: mu.Lock, undo: mu.Unlock}
	}},
	{name: "Mutex.Lock as kazoo", play: func(st *stage) play {
		mu := zksync.NewMutex(st.m, stagePath, zksync.WithLayout(zksync.LayoutKazoo))
		return play{call: mu.Lock, undo: mu.Unlock}
	}},
	{name: "Mutex.TryLock", play: func(st *stage) play {
		mu := zksync.NewMutex(st.m, stagePath)
		return play{call: func(ctx context.Context) error { return declined(mu.TryLock(ctx)) }, undo: mu.Unlock}
	}},
	{name: "Mutex.TryLock in vain", fails: []error{errDeclined}, play: func(st *stage) play {
		theirs, mu := zksync.NewMutex(st.other, stagePath), zksync.NewMutex(st.m, stagePath)
		st.must(theirs.Lock(st.ctx))
		return play{call: func(ctx context.Context) error { return declined(mu.TryLock(ctx)) }}
	}},
	{name: "Mutex.Do", play: func(st *stage) play {
		mu := zksync.NewMutex(st.m, stagePath)
		return play{call: func(ctx context.Context) error { return mu.Do(ctx, func(context.Context) error { return nil }) }}
	}},
	{name: "RWMutex.Lock behind a reader", play: func(st *stage) play {
		theirs, rw := zksync.NewRWMutex(st.other, stagePath), zksync.NewRWMutex(st.m, stagePath)
		st.must(theirs.RLock(st.ctx))
		return play{call: rw.Lock, release: func() { st.must(theirs.RUnlock()) }, undo: rw.Unlock}
	}},
	{name: "RWMutex.RLock", play: func(st *stage) play {
		rw := zksync.NewRWMutex(st.m, stagePath)
		return play{call: rw.RLock, undo: rw.RUnlock}
	}},
	{name: "RWMutex.RLock behind a writer", play: func(st *stage) play {
		theirs, rw := zksync.NewRWMutex(st.other, stagePath), zksync.NewRWMutex(st.m, stagePath)
		st.must(theirs.Lock(st.ctx))
		return play{call: rw.RLock, release: func() { st.must(theirs.Unlock()) }, undo: rw.RUnlock}
	}},
	{name: "RWMutex.TryRLock", play: func(st *stage) play {
		rw := zksync.NewRWMutex(st.m, stagePath)
		return play{call: func(ctx context.Context) error { return declined(rw.TryRLock(ctx)) }, undo: rw.RUnlock}
	}},
	{name: "RWMutex.Downgrade", play: func(st *stage) play {
		rw := zksync.NewRWMutex(st.m, stagePath)
		st.must(rw.Lock(st.ctx))
		return play{call: rw.Downgrade, undo: rw.RUnlock}
	}},
	{name: "RWMutex.RDo", play: func(st *stage) play {
		rw := zksync.NewRWMutex(st.m, stagePath)
		return play{call: func(ctx context.Context) error { return rw.RDo(ctx, func(context.Context) error { return nil }) }}
	}},
	{name: "Semaphore.Acquire", play: func(st *stage) play {
		s := zksync.NewSemaphore(st.m, stagePath, 3)
		return play{call: func(ctx context.Context) error { return s.Acquire(ctx, 2) }, undo: func() error { return s.Release(2) }}
	}},
	{name: "Semaphore.Acquire behind another", play: func(st *stage) play {
		theirs, s := zksync.NewSemaphore(st.other, stagePath, 3), zksync.NewSemaphore(st.m, stagePath, 3)
		st.must(theirs.Acquire(st.ctx, 2))
		return play{
			call:    func(ctx context.Context) error { return s.Acquire(ctx, 2) },
			release: func() { st.must(theirs.Release(2)) },
			undo:    func() error { return s.Release(2) },
		}
	}},
	{name: "Semaphore.Acquire of a size", play: func(st *stage) play {
		st.must(st.srv.Create("/size", []byte("2")))
		s := zksync.NewSemaphore(st.m, stagePath, 1, zksync.WithSizeFrom("/size"))
		return play{call: func(ctx context.Context) error { return s.Acquire(ctx, 2) }, undo: func() error { return s.Release(2) }}
	}},
	{name: "Semaphore.TryAcquire", play: func(st *stage) play {
		s := zksync.NewSemaphore(st.m, stagePath, 3)
		return play{
			call: func(ctx context.Context) error { return declined(s.TryAcquire(ctx, 1)) },
			undo: func() error { return s.Release(1) },
		}
	}},
	{name: "Semaphore.TryAcquire in vain", fails: []error{errDeclined}, play: func(st *stage) play {
		theirs, s := zksync.NewSemaphore(st.other, stagePath, 1), zksync.NewSemaphore(st.m, stagePath, 1)
		st.must(theirs.Acquire(st.ctx, 1))
		return play{call: func(ctx context.Context) error { return declined(s.TryAcquire(ctx, 1)) }}
	}},
}
