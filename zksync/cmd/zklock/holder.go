package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// A holder acquires and releases the lock, units or leadership of run.
type holder struct {
	// acquire waits, or with try reports false if others hold.
	acquire func(ctx context.Context, try bool) (held context.Context, ok bool, err error)
	release func() error
}

// waiting makes an acquire of a pair of calls.
func waiting(wait func(context.Context) (context.Context, error), try func(context.Context) (context.Context, bool, error)) func(context.Context, bool) (context.Context, bool, error) {
	return func(ctx context.Context, once bool) (context.Context, bool, error) {
		if once {
			return try(ctx)
		}
		held, err := wait(ctx)
		return held, err == nil, err
	}
}

// holder returns the primitive that the options name.
func (r *runCommand) holder(m *session.Manager) holder {
	host, _ := os.Hostname()
	id := zksync.WithID(cmp.Or(r.id, fmt.Sprintf("%s:%d", host, os.Getpid())))
	switch {
	case r.rlock:
		rw := zksync.NewRWMutex(m, r.path, id)
		return holder{waiting(rw.RLockContext, rw.TryRLockContext), rw.RUnlock}
	case r.wlock:
		rw := zksync.NewRWMutex(m, r.path, id)
		return holder{waiting(rw.LockContext, rw.TryLockContext), rw.Unlock}
	case r.units > 0:
		s := zksync.NewSemaphore(m, r.path, r.units, id)
		return holder{waiting(
			func(ctx context.Context) (context.Context, error) { return s.AcquireContext(ctx, 1) },
			func(ctx context.Context) (context.Context, bool, error) { return s.TryAcquireContext(ctx, 1) },
		), func() error { return s.Release(1) }}
	case r.elect:
		e := zksync.NewElection(m, r.path, id)
		return holder{waiting(e.Campaign, nil), e.Resign}
	}
	mu := zksync.NewMutex(m, r.path, id)
	return holder{waiting(mu.LockContext, mu.TryLockContext), mu.Unlock}
}
