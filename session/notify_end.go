package session

import (
	"context"
	"sync"
)

// An endNotice ends the Context of a Session.
type endNotice struct {
	end context.CancelCauseFunc // of notify alone

	mu    sync.Mutex
	ended bool
	calls map[*func(error)]struct{} // to be called
	done  chan struct{}             // closed when all have been called
}

// init returns the Context.
func (n *endNotice) init() (ctx context.Context) {
	n.done, n.calls = make(chan struct{}), make(map[*func(error)]struct{})
	ctx, n.end = context.WithCancelCause(context.Background())
	return ctx
}

// add has f called at the end. It fails if the end has come.
func (n *endNotice) add(f func(cause error)) (stop func(), ok bool) {
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

// notify ends the Context, and returns when everybody who asked for it by NotifyEnd
// has been notified. Only the first call has an effect.
func (n *endNotice) notify(why error) {
	n.mu.Lock()
	if n.ended {
		n.mu.Unlock()
		<-n.done
		return
	}
	n.end(why)
	n.ended = true
	calls := n.calls
	n.calls = map[*func(error)]struct{}{}
	n.mu.Unlock()
	// Without mu: f may wait for a lock whose owner is calling NotifyEnd or stop.
	for f := range calls {
		(*f)(why)
	}
	close(n.done)
}
