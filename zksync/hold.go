package zksync

import (
	"context"

	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A hold is one goroutine's turn at a place.
type hold struct {
	p        *place
	cancel   context.CancelCauseFunc
	unfollow func()
}

type tokenKey struct{}

// Token returns the fencing token that the context of a hold or of leadership
// carries: the czxid of the znode of the hold. It is greater than the token of every
// earlier hold on the same path, except that goroutines of one process that take
// turns at one znode share it. The tokens of an RWMutex order each writer among all
// earlier and later holders; readers that overlap may have any order. The tokens of a
// Semaphore identify a hold and fence nothing. ok is false for any other context.
//
// A process that was paused may act on a hold that it lost meanwhile. No library can
// prevent that. A resource is safe if it remembers the greatest token that it has
// seen and refuses smaller ones:
//
//	if token < r.newest { return errStale }
//	r.newest = token
func Token(ctx context.Context) (token int64, ok bool) {
	token, ok = ctx.Value(tokenKey{}).(int64)
	return token, ok
}

// context derives the context of the hold from the caller's context. Call it before
// the hold can end.
func (h *hold) context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, tokenKey{}, h.p.token))
	h.cancel = cancel
	var err error
	if h.unfollow, err = znode.NotifyLoss(h.p.s, cancel); err != nil {
		cancel(err)
	}
	if err := h.p.guard.follow(cancel); err != nil {
		cancel(err)
	}
	return ctx
}

// end ends the context of the hold, if it has one.
func (h *hold) end(cause error) {
	if h.cancel == nil {
		return
	}
	h.p.guard.follow(nil)
	h.unfollow()
	h.cancel(cause)
}
