package session

import "sync"

// NotifyEnd has f called once, with the cause, when the Session's Context ends: before
// the session is closed on the server, and so before anybody else can be granted what
// this session holds. context.AfterFunc does not promise that, since it calls its
// function in another goroutine. f must not block, and must not call NotifyEnd. After
// stop, f is not called any more unless it is being called.
//
// If the Context has ended already, NotifyEnd fails with its cause and does not call f.
func (s *Session) NotifyEnd(f func(cause error)) (stop func(), err error) {
	n := &s.end
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return nil, s.cause()
	}
	if n.notify == nil {
		n.notify = make(map[*func(error)]struct{})
	}
	n.notify[&f] = struct{}{}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.notify, &f)
	}, nil
}

// An endNotice is the part of a Session that ends its Context.
type endNotice struct {
	mu     sync.Mutex
	ended  bool
	notify map[*func(error)]struct{} // to be called
	done   chan struct{}             // closed when all have been called
}

// endContext ends the Context, and returns when everybody who asked for it by NotifyEnd
// has been notified. Only the first call has an effect.
func (s *Session) endContext(why error) {
	n := &s.end
	n.mu.Lock()
	if n.ended {
		n.mu.Unlock()
		<-n.done
		return
	}
	s.endHold(why)
	n.ended = true
	notify := n.notify
	n.notify = nil
	n.mu.Unlock()
	// Without mu: f may wait for a lock whose owner is calling NotifyEnd or stop.
	for f := range notify {
		(*f)(why)
	}
	close(n.done)
}
