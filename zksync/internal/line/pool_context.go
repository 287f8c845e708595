package line

import "context"

// A heldContext is the context of a hold that has not ended.
type heldContext struct {
	cancel context.CancelCauseFunc
	forget func() bool
}

// Context derives the context of a hold from the caller's context. It ends when the last
// hold of the pool is released. Context returns nil if there is no grant.
func (pl *Pool) Context(parent context.Context, g *Grant) context.Context {
	if g == nil {
		return nil
	}
	held, _ := pl.newContext(parent, g)
	return held
}

// newContext is Context. end ends the context of this hold alone.
func (pl *Pool) newContext(parent context.Context, g *Grant) (held context.Context, end context.CancelCauseFunc) {
	ctx, cancel := g.newContext(parent)
	// A loss either is found by check or comes after the unlock, and ends the context then.
	t := &heldContext{cancel: cancel}
	pl.mu.Lock()
	defer pl.mu.Unlock()
	err := pl.check()
	if err == nil && len(pl.grants) == 0 {
		err = ErrReleased // by a caller without a hold
	}
	if err != nil {
		cancel(err)
		return ctx, cancel
	}
	if pl.contexts == nil {
		pl.contexts = make(map[*heldContext]struct{})
	}
	pl.contexts[t] = struct{}{}
	// Callers may derive any number of contexts from one hold that lasts. A context whose
	// parent has ended must not stay in the map until the pool is released.
	t.forget = context.AfterFunc(ctx, func() {
		pl.mu.Lock()
		defer pl.mu.Unlock()
		delete(pl.contexts, t)
	})
	return ctx, cancel
}

// endContexts ends the contexts of all holds; pl.mu is held.
func (pl *Pool) endContexts(cause error) {
	for t := range pl.contexts {
		// Before cancel, which would start a goroutine for each context to delete it
		// from the map.
		t.forget()
		t.cancel(cause)
	}
	clear(pl.contexts)
}
