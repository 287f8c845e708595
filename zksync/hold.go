package zksync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/line"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
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

// A primitive has the parts that the primitives share.
type primitive struct {
	m    *session.Manager
	path string
	cfg  config
	err  error // of the path or the options: every call fails with it
}

// A noCopy makes go vet report copies of the struct that has it.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

func newPrimitive[O Option](name string, m *session.Manager, path string, opts []O) primitive {
	cfg, err := newConfig(name, m, path, opts)
	return primitive{m: m, path: path, cfg: cfg, err: err}
}

// errNotConstructed is the error of a value that no constructor has made.
var errNotConstructed = fmt.Errorf("%w: the value is a zero value, want a result of its constructor, such as NewMutex", ErrInvalidOption)

// invalid returns the error with which every call fails, or nil.
func (p *primitive) invalid() error {
	if p.m == nil && p.err == nil {
		return errNotConstructed
	}
	return p.err
}

// opError is the error of an operation at the path, nil for nil.
func (p *primitive) opError(op string, err error) error { return opError(op, p.path, err) }

// ready returns the error with which an acquisition fails at once: the error of the
// options, or of ctx.
func ready(ctx context.Context, err error) error {
	if err == nil && ctx.Err() != nil {
		err = session.Cancelled(ctx)
	}
	return err
}

// listContenders returns the first n contenders that list finds behind a commit, or all if n is
// negative.
func (p *primitive) listContenders(ctx context.Context, op string, list func(context.Context, *session.Session, int) ([]line.Listed, error), n int) ([]Contender, error) {
	if err := p.invalid(); err != nil {
		return nil, p.opError(op, err)
	}
	all, err := znode.ReadCommitted(ctx, p.m, p.path, func(ctx context.Context, s *session.Session) ([]line.Listed, error) {
		return list(ctx, s, n)
	})
	if all == nil {
		return nil, p.opError(op, err)
	}
	found := make([]Contender, len(all))
	for i, l := range all {
		found[i] = contenderOf(l)
	}
	return found, p.opError(op, err)
}

// errNoWork is the error of a call whose function is nil.
var errNoWork = fmt.Errorf("%w: the function is nil, want one that does the work", ErrInvalidOption)

// An ownHold is a hold that a Do has acquired.
type ownHold struct {
	context.Context
	s       *session.Session
	release func() error
}

// under calls fn under a hold from acquire, which it releases when fn returns or panics. WithMaxWait bounds
// the context of acquire, and not the hold. It
// returns the error of fn, joined with the error of the release, which says that the
// hold had been lost. Manager.Close waits for fn. op is for errors and log lines.
func (p *primitive) under(ctx context.Context, op string, fn func(context.Context) error, acquire func(wait context.Context) (ownHold, error)) (err error) {
	if fn == nil {
		return p.opError(op, errNoWork)
	}
	var held ownHold
	var done func()
	wait, cancel := p.cfg.bound(ctx)
	defer cancel()
	for done == nil {
		if held, err = acquire(wait); err != nil {
			return p.opError(op, err)
		}
		if done, err = held.s.Busy(); err != nil {
			// The session has ended since the grant. fn was not called, so nothing depends on the
			// hold, and the next acquire joins the line again or says that the Manager is closed.
			_ = held.release()
		}
	}
	defer func() {
		if failed := held.release(); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	defer done()
	defer p.awaitReturn(op, held.Context)()
	return fn(held.Context)
}

// returnTime is the time in which a function ends its work after the end of its context.
const returnTime = 3 * time.Second

// awaitReturn starts a Wait a while after the context of a hold has ended, until returned is called: a function that
// goes on without its hold may be at work beside the next holder.
func (p *primitive) awaitReturn(op string, held context.Context) (returned func()) {
	over := make(chan struct{})
	stop := context.AfterFunc(held, func() {
		late := time.NewTimer(returnTime)
		defer late.Stop()
		select {
		case <-over:
			return
		case <-late.C:
		}
		wait := p.m.StartWait(op, p.path, func(context.Context) error {
			return fmt.Errorf("for its function to return, whose context has ended: %w", context.Cause(held))
		})
		<-over
		wait.Stop()
	})
	return func() {
		stop()
		close(over)
	}
}
