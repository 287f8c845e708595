package session

import "github.com/go-zookeeper/zk"

// Notify has f called with the event of the watch, once: when it comes, or at
// once if it has come already. After Stop it is not called any more. It is for
// those who follow thousands of znodes and want no goroutine for each; call it
// once, instead of receiving from Events.
//
// f runs in the goroutine that reads the connection, in the order of the events:
// ahead of the answer to any request that the server has handled after the
// change. It must not block, and must not call methods of a Session or a Watch.
func (w *Watch) Notify(f func(zk.Event)) {
	w.hub.mu.Lock()
	waiting := w.index >= 0
	if waiting {
		w.notify = f
	}
	w.hub.mu.Unlock()
	if waiting {
		return
	}
	select {
	case ev, ok := <-w.events:
		if ok {
			f(ev)
		}
	default: // given up
	}
}
