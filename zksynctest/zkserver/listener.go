package zkserver

import "net"

// listener is a net.Listener that the server accepts connections on.
type listener struct {
	l     net.Listener
	owned bool // opened by Listen, so that Start opens it again
	addr  net.Addr
	quit  chan struct{} // closed when the accept loop must end
}

// end wakes the accept loop. The caller holds mu.
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
