package line

import (
	"context"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Hold is one goroutine's use of a contender that is granted.
type Hold struct {
	p        *contender
	cancel   context.CancelCauseFunc
	unfollow func()
}

type tokenKey struct{}

// TokenOf returns the fencing token that the context of a hold carries.
func TokenOf(ctx context.Context) (token int64, ok bool) {
	token, ok = ctx.Value(tokenKey{}).(int64)
	return token, ok
}

// Context derives the context of the hold from the caller's context. Call it before the
// hold can end.
func (h *Hold) Context(parent context.Context) context.Context {
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
func (h *Hold) end(cause error) {
	if h.cancel == nil {
		return
	}
	h.p.guard.follow(nil)
	h.unfollow()
	h.cancel(cause)
}

// Session returns the session on which the hold depends.
func (h *Hold) Session() *session.Session { return h.p.s }

// Lost returns the loss of the hold, nil if it is not lost.
func (h *Hold) Lost() error { return h.p.lost() }

// Leave deletes the contender in the background.
func (h *Hold) Leave() { h.p.leave() }

// Release ends the hold, deletes the contender, and waits for the answer; see
// contenderRemover. It fails with the loss if the hold was lost.
func (h *Hold) Release() error {
	if err := h.p.lost(); err != nil {
		h.end(err)
		h.p.leave()
		return err
	}
	h.end(ErrReleased)
	return h.p.release()
}
