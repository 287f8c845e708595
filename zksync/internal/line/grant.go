package line

import (
	"cmp"
	"context"
	"errors"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// ErrReleased is the cause with which the context of a hold ends when the hold is
// released.
var ErrReleased = errors.New("zksync: released")

// A Grant is the right to hold: znodes of ours, with a guard, under one lease. A hold of
// a Mutex, of a writer or of an Election is a grant of one znode. In a Pool, any number
// of holds share a grant, and a grant of a Semaphore has a znode for each unit.
type Grant struct {
	s       *session.Session
	lease   *session.Lease // held
	token   int64
	guard   *holdGuard // of the znodes
	remover znodeRemover

	unfollow   func()                  // ends the notice of a loss
	endContext context.CancelCauseFunc // of a hold without a pool, nil if it has no context

	// Guarded by the pool's mutex:
	left  int // holds that have not been released
	owned int // of these, holds that a Do owns
}

// newGrant returns a grant of znodes under a lease that is held. own is a watch on the
// first znode, or nil.
func newGrant(s *session.Session, lease *session.Lease, token int64, r znodeRemover, own *session.Watch, paths ...string) *Grant {
	return &Grant{s: s, lease: lease, token: token, guard: newHoldGuard(s, lease, paths, own, r.identify(), r.gone), remover: r, unfollow: func() {}}
}

// renew returns the grant of the next hold of the same znodes. A Do that still has the
// grant of an earlier hold must not release the next one.
func (g *Grant) renew() *Grant {
	return &Grant{s: g.s, lease: g.lease, token: g.token, guard: g.guard, remover: g.remover, unfollow: func() {}}
}

// Session returns the session on which the grant depends.
func (g *Grant) Session() *session.Session { return g.s }

// shared reports whether a grant has a hold that no Do owns.
func (g *Grant) shared() bool { return g.left > g.owned }

// Lost returns the loss of the grant, nil if it is not lost.
func (g *Grant) Lost() error {
	// The end of the session deletes the znodes, too. So the session comes first: its
	// end is the reason, and not a removal by another client.
	if err := znode.SessionLost(g.s); err != nil {
		return err
	}
	return g.guard.lost()
}

// follow sets the function to call at a loss. If the loss has happened already,
// follow returns it.
func (g *Grant) follow(onLoss func(error)) error {
	stopNotice, err := znode.NotifyLoss(g.s, onLoss)
	if err != nil {
		return err
	}
	stopGuard := g.guard.whenLost(onLoss)
	g.unfollow = func() {
		stopNotice()
		stopGuard()
	}
	// The guard reports a loss that it knows already in a goroutine of its own, and so perhaps
	// after the caller has begun to use the hold.
	return g.guard.lost()
}

type tokenKey struct{}

// TokenOf returns the fencing token that the context of a hold carries.
func TokenOf(ctx context.Context) (token int64, ok bool) {
	token, ok = ctx.Value(tokenKey{}).(int64)
	return token, ok
}

// newContext derives the context of a hold from the caller's context.
func (g *Grant) newContext(parent context.Context) (context.Context, context.CancelCauseFunc) {
	return context.WithCancelCause(context.WithValue(parent, tokenKey{}, g.token))
}

// Context derives the context of a hold without a pool from the caller's context. Call
// it before the hold can end.
func (g *Grant) Context(parent context.Context) context.Context {
	ctx, cancel := g.newContext(context.WithValue(parent, g, true))
	g.endContext = cancel
	if err := g.follow(cancel); err != nil {
		cancel(err)
	}
	return ctx
}

// Ends reports whether ctx ends with this hold: it is the result of Context, or derived from it.
// A context that never ends is not: context.WithoutCancel keeps the values.
func (g *Grant) Ends(ctx context.Context) bool { return ctx.Done() != nil && ctx.Value(g) != nil }

// end ends the context of a hold without a pool, if it has one: with the loss that it
// returns, or with ErrReleased.
func (g *Grant) end() error {
	lost := g.Lost()
	if g.endContext != nil {
		g.unfollow()
		g.endContext(cmp.Or(lost, ErrReleased))
	}
	return lost
}

// Release ends a hold without a pool, deletes the znodes, and waits for the answer; see
// remove. It fails with the loss if the hold was lost.
func (g *Grant) Release() error {
	if err := g.end(); err != nil {
		// The caller gets the loss, whatever the server would answer.
		g.discard()
		return err
	}
	return g.remove()
}

// stop stops the guard. The znodes and the lease stay.
func (g *Grant) stop() {
	g.unfollow()
	g.guard.stop()
}

// discard deletes the znodes in the background. The channels are like the
// channel of Session.Discard.
func (g *Grant) discard() []<-chan error {
	g.stop()
	g.lease.End()
	return g.remover.discardZnodes(g)
}

// remove deletes the znodes and waits for the answer, at most until the session's
// Deadline; from then on the removal continues in the background. It fails if another
// client has deleted a znode or ended the session, perhaps before the call.
func (g *Grant) remove() error {
	defer g.lease.End()
	// The guard stops first: it would take our own deletion for a loss.
	g.stop()
	g.lease.Release() // nothing is held, but the answer should still come in time
	// A release has no ctx of a caller, and must not wait for longer than the hold could have
	// lasted: after the Deadline the session may end at any time, and its znodes with it.
	ctx, cancel := context.WithDeadline(context.Background(), g.s.Deadline())
	defer cancel()
	err := g.remover.deleteZnodes(ctx, g)
	switch session.ClassOf(err) {
	case session.ClassOK:
		return nil
	case session.ClassNoNode, session.ClassRemoved:
		g.lease.Lose()
		return session.ErrRemoved
	case session.ClassNoAuth, session.ClassNotEmpty, session.ClassFinal:
		// The janitor goes on: the permission may be given later.
		g.remover.discardZnodes(g)
		return err
	}
	refused := znode.AwaitRemoval(ctx, g.remover.discardZnodes(g)...)
	if err := g.s.Err(); err != nil && ctx.Err() == nil {
		// The session has ended before its Deadline, perhaps before the release.
		return znode.LossOf(err)
	}
	if ctx.Err() == nil {
		// The server may refuse a removal whose first request has failed for another reason.
		return refused
	}
	// The hold was good until the release began, even if no request has reached the
	// server.
	return nil
}
