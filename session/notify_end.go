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
	calls := n.calls
	n.calls = map[*func(error)]struct{}{}
	n.mu.Unlock()
	// Call f without mu: f may wait for a lock whose owner is calling NotifyEnd or stop.
	for f := range calls {
		(*f)(why)
	}
	close(n.done)
}
