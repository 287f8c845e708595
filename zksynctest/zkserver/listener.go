package zkserver

import "net"

// listener is one address that the server accepts on.
type listener struct {
	l     net.Listener
	owned bool // opened by Listen: Start opens it again
	addr  net.Addr
	quit  chan struct{} // closed when it is not to accept any more
}

// end has the goroutine that accepts give up waiting. The caller holds mu.
func (l *listener) end() {
	if l.quit != nil {
		close(l.quit)
		l.quit = nil
	}
}

func (l *listener) close() {
	if l.l != nil {
		l.l.Close()
	}
}
