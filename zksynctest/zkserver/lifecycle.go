package zkserver

import (
	"net"
	"slices"
	"time"
)

// thawGrace is how long a server that was frozen handles what had piled up before
// it looks for sessions to expire.
const thawGrace = 50 * time.Millisecond

// Freeze stops the server as SIGSTOP would: connections can be made, but nothing is
// read, answered or expired. The methods of Server work all the same.
func (s *Server) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.thaw == nil && !s.closed && !s.down {
		s.thaw = make(chan struct{})
		s.setTimer()
	}
}

// Thaw lets a frozen server go on. Requests that came in meanwhile are handled
// before sessions expire.
func (s *Server) Thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.thaw == nil {
		return
	}
	s.unfreeze()
	s.notBefore = s.elapsed(time.Now().Add(thawGrace))
	s.setTimer()
}

func (s *Server) unfreeze() {
	if s.thaw != nil {
		close(s.thaw)
		s.thaw = nil
	}
}

// frozen is nil while the server runs, and otherwise a channel that is closed when
// it does again.
func (s *Server) frozen() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.thaw
}

// Stop takes the server down as a crash would: connections and listeners are
// closed, and dials refused. The tree, the sessions and the zxid are kept, and no
// session expires until [Server.Start]. It also ends a freeze.
func (s *Server) Stop() {
	s.mu.Lock()
	if s.closed || s.down {
		s.mu.Unlock()
		return
	}
	s.down = true
	s.unfreeze()
	s.setTimer()
	var ended []*listener
	for _, l := range s.listeners {
		ended = append(ended, &listener{l: l.l})
		l.l = nil
	}
	s.listeners = slices.DeleteFunc(s.listeners, func(l *listener) bool { return !l.owned })
	conns := s.hangUpAll()
	s.mu.Unlock()

	for _, l := range ended {
		l.close()
	}
	closeAll(conns)
}

// Start brings a stopped server up again. All sessions have their full timeout
// from now. What [Server.Listen] opened listens on the same port again; if that
// fails the server stays down. A server that runs is left as it is.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrNotServing
	}
	if !s.down {
		return nil
	}
	var opened []net.Listener
	for _, entry := range s.listeners {
		l, err := net.Listen("tcp", entry.addr.String())
		if err != nil {
			for _, l := range opened {
				l.Close()
			}
			return err
		}
		opened = append(opened, l)
	}
	s.down = false
	for i, entry := range s.listeners {
		s.acceptOwned(entry, opened[i])
	}
	now := time.Now()
	for _, sess := range s.sessions {
		s.touch(sess, now)
	}
	s.reapDue = 0
	s.planReaper(now)
	s.setTimer()
	return nil
}

// Restart is Stop and then Start.
func (s *Server) Restart() error {
	s.Stop()
	return s.Start()
}
