package session

import (
	"context"
	"sync"
)

// An endNotice ends the Context of a Session and calls the functions of NotifyEnd.
type endNotice struct {
	end context.CancelCauseFunc // only notify calls it

	mu    sync.Mutex
	ended bool
	calls map[*func(error)]struct{} // functions to call
	done  chan struct{}             // closed when all functions have returned
}

// init returns the Context.
func (n *endNotice) init() (ctx context.Context) {
	n.done, n.calls = make(chan struct{}), make(map[*func(error)]struct{})
	ctx, n.end = context.WithCancelCause(context.Background())
	return ctx
}

// register makes notify call f. It returns false if notify has been called.
func (n *endNotice) register(f func(cause error)) (stop func(), ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return nil, false
	}
	n.calls[&f] = struct{}{}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.calls, &f)
	}, true
}

// notify ends the Context, and returns when every function of NotifyEnd has returned.
// Only the first call has an effect.
func (n *endNotice) notify(why error) {
	n.mu.Lock()
	if n.ended {
		n.mu.Unlock()
		// The caller closes the session on the server next, which the functions must precede.
		<-n.done
		return
	}
	// Before the functions: a function may look at the Context. Under mu, so that register
	// either finds ended set or has its function called.
	n.end(why)
	n.ended = true
	n.mu.Unlock()
	for f := n.take(); f != nil; f = n.take() {
		// Without mu: f may wait for a lock whose owner is calling NotifyEnd or stop.
		(*f)(why)
	}
	close(n.done)
}

// take removes a function that is to be called, and returns nil if there is none.
func (n *endNotice) take() *func(error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	// One at a time: a stop that has returned meanwhile has removed its function.
	for f := range n.calls {
		delete(n.calls, f)
		return f
	}
	return nil
}
