package zksync

import (
	"context"
	"errors"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/line"
)

// Token returns the fencing token that the context of a hold or of leadership carries. It
// is greater than the token of every earlier hold on the same path, except that
// goroutines of one process that take turns at one znode share a token. The tokens of an
// RWMutex order each writer among all earlier and later holders; readers that overlap may
// have any order. The tokens of a Semaphore identify a hold and fence nothing. ok is
// false for any other context.
//
// A process that was paused may act on a hold that it has lost meanwhile. A resource is
// safe if it remembers the greatest token that it has seen and refuses smaller ones:
//
//	if token < r.newest { return errStale }
//	r.newest = token
func Token(ctx context.Context) (token int64, ok bool) { return line.TokenOf(ctx) }

// ready returns the error with which an acquisition fails at once: the error of the
// options, or of ctx.
func ready(ctx context.Context, err error) error {
	if err == nil && ctx.Err() != nil {
		err = session.Cancelled(ctx)
	}
	return err
}

// under calls fn under a hold, which it releases when fn returns or panics. It
// returns the error of fn, joined with the error of the release, which says that the
// hold had been lost. Manager.Close waits for fn.
func under(held context.Context, s *session.Session, fn func(context.Context) error, release func() error) (err error) {
	defer func() {
		if failed := release(); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	done, err := s.Busy()
	if err != nil {
		return err
	}
	defer done()
	return fn(held)
}
