package zkserver

import (
	"net"
	"time"
)

// listener is a net.Listener that the server accepts connections on.
type listener struct {
	l     net.Listener
	owned bool // opened by Listen, so that Start opens it again
	addr  net.Addr
	quit  chan struct{} // closed when the accept loop must end

	// reserved is a connection of the listener to itself, the client's end first. See reserve.
	reserved []net.Conn
}

// reserve keeps the port for Start while the listener is closed: as long as a connection has the
// port, the system gives it to nobody who asks for any free port. A client that connects before
// reserve returns is refused. A listener that cannot reach itself has no reservation.
func (l *listener) reserve() {
	ours, err := net.DialTimeout("tcp", l.addr.String(), time.Second)
	if err != nil {
		return
	}
	l.reserved = append(l.reserved, ours)
	for {
		c, err := l.l.Accept()
		if err != nil {
			return
		}
		if c.RemoteAddr().String() == ours.LocalAddr().String() {
			l.reserved = append(l.reserved, c)
			return
		}
		c.Close()
	}
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
	for _, c := range l.reserved {
		c.Close()
	}
}
