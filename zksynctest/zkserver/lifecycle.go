package zkserver

import (
	"errors"
	"net"
	"slices"
	"time"
)

// thawGrace is how long a server that was frozen handles what had piled up before
// it looks for sessions to expire, or learns that the others gave it up.
const thawGrace = 50 * time.Millisecond

// Freeze stops the server as SIGSTOP would: connections can be made, but nothing is
// read, answered or expired. The methods of Server work all the same. In an
// ensemble all endpoints are frozen.
func (s *Server) Freeze() { s.freeze(s.endpoints...) }

// Thaw lets a frozen server go on. Requests that came in meanwhile are handled
// before sessions expire.
func (s *Server) Thaw() { s.goOn(s.endpoints...) }

// Freeze stops the endpoint as SIGSTOP would: connections can be made, but nothing
// is read or answered. After [Config.SyncLimit] ticks the others give it up; if it
// leads, they choose another leader then, and until then nothing is committed.
func (e *Endpoint) Freeze() { e.s.freeze(e) }

// Thaw lets a frozen endpoint go on. If the others have given it up it does not
// know for a moment: it answers what has piled up from the tree as it knew it, and
// closes its connections only then.
func (e *Endpoint) Thaw() { e.s.goOn(e) }

func (s *Server) freeze(list ...*Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range list {
		if e.thaw != nil || s.closed || e.down {
			continue
		}
		e.thaw = make(chan struct{})
		if len(s.endpoints) == 1 || !e.member {
			continue
		}
		for _, r := range s.replicas {
			if r.ep == e && r.view == nil {
				s.fallBehind(r)
				r.asleep = true
			}
		}
		s.doubtFor(e, s.patience())
	}
	s.reconsider()
}

func (s *Server) goOn(list ...*Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range list {
		if e.thaw == nil {
			continue
		}
		e.unfreeze()
		s.notBefore = s.elapsed(time.Now().Add(thawGrace))
		switch {
		case !e.member:
		case e.rep.cut:
			s.doubtFor(e, thawGrace)
		default:
			s.certain(e)
			for _, r := range s.replicas {
				if r.ep == e && r.asleep {
					r.asleep = false
					s.catchUp(r)
				}
			}
		}
	}
	s.reconsider()
	s.reportOverdue()
}

func (e *Endpoint) unfreeze() {
	if e.thaw != nil {
		close(e.thaw)
		e.thaw = nil
	}
}

// frozen is nil while the endpoint runs, and otherwise a channel that is closed
// when it does again.
func (e *Endpoint) frozen() <-chan struct{} {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	return e.thaw
}

// Stop takes the server down as a crash would: connections and listeners are
// closed, and dials refused. The tree, the sessions and the zxid are kept, and no
// session expires until [Server.Start]. It also ends a freeze. In an ensemble all
// endpoints are stopped.
func (s *Server) Stop() { s.stop(s.endpoints...) }

// Stop takes the endpoint down as a crash would: its connections and listeners are
// closed, and dials to it refused. It also ends a freeze. If it leads, or a
// majority is left no more, the connections to the others are closed as well; they
// serve again when they have a leader.
func (e *Endpoint) Stop() { e.s.stop(e) }

func (s *Server) stop(list ...*Endpoint) {
	s.mu.Lock()
	var ended []*listener
	var conns []*conn
	for _, e := range list {
		if s.closed || e.down {
			continue
		}
		for _, l := range e.listeners {
			ended = append(ended, &listener{l: l.l})
			l.l = nil
		}
		e.listeners = slices.DeleteFunc(e.listeners, func(l *listener) bool { return !l.owned })
		led := e == s.leader
		e.down = true
		e.unfreeze()
		conns = append(conns, s.hangUpOn(e)...)
		s.leave(e)
		if led || s.leader != nil && !s.isMajority(s.followed()) {
			s.depose()
		}
	}
	s.reconsider()
	s.mu.Unlock()

	for _, l := range ended {
		l.close()
	}
	closeAll(conns)
}

// Start brings a stopped server up again. All sessions have their full timeout
// from now. What [Server.Listen] opened listens on the same port again; if that
// fails the server stays down. A server that runs is left as it is.
func (s *Server) Start() error { return s.start(s.endpoints...) }

// Start brings a stopped endpoint up again, as [Server.Start] does, with the
// transactions it has missed. It serves at once if there is a leader, and when one
// is elected if not. Sessions have their full timeout from a new leader on.
func (e *Endpoint) Start() error { return e.s.start(e) }

func (s *Server) start(list ...*Endpoint) error {
	if err := s.journal.failure(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrNotServing
	}
	var failed []error
	for _, e := range list {
		if !e.down {
			continue
		}
		if err := s.listenAgain(e); err != nil {
			failed = append(failed, err)
			continue
		}
		e.down, e.lost = false, time.Now()
	}
	s.reconsider()
	return errors.Join(failed...)
}

// listenAgain opens the listeners of e, all or none.
func (s *Server) listenAgain(e *Endpoint) error {
	var opened []net.Listener
	for _, entry := range e.listeners {
		l, err := net.Listen("tcp", entry.addr.String())
		if err != nil {
			for _, l := range opened {
				l.Close()
			}
			return err
		}
		opened = append(opened, l)
	}
	for i, entry := range e.listeners {
		s.acceptOwned(entry, opened[i])
	}
	return nil
}

// Restart is Stop and then Start.
func (s *Server) Restart() error {
	s.Stop()
	return s.Start()
}

// Restart is Stop and then Start. The others notice: see [Endpoint.Stop].
func (e *Endpoint) Restart() error {
	e.Stop()
	return e.Start()
}
