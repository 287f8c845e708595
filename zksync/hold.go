package zksync

import (
	"context"
)

// A hold is one goroutine's turn at a place.
type hold struct {
	p        *place
	cancel   context.CancelCauseFunc
	unfollow func() bool
}

type tokenKey struct{}

// Token returns the fencing token that the context of a hold or of leadership
// carries: the czxid of the znode by which it is held. It is greater than that of
// every earlier hold on the same path, except that goroutines of one process that
// take turns at one znode share it. ok is false for any other context.
//
// A process that was paused may act on a hold that it lost meanwhile, whatever
// this library does. A resource is safe if it remembers the greatest token that
// it has seen and refuses smaller ones:
//
//	if token < r.newest { return errStale }
//	r.newest = token
func Token(ctx context.Context) (token int64, ok bool) {
	token, ok = ctx.Value(tokenKey{}).(int64)
	return token, ok
}

// context derives the context of the hold from that of the caller. It is to be
// called before anybody can end the hold.
func (h *hold) context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, tokenKey{}, h.p.token))
	h.cancel = cancel
	lost := h.p.s.Context()
	h.unfollow = context.AfterFunc(lost, func() { cancel(lossOf(context.Cause(lost))) })
	h.p.guard.follow(cancel)
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
