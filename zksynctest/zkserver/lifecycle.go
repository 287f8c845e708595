package zkserver

import (
	"errors"
	"net"
	"slices"
	"time"
)

// Freeze stops the server as SIGSTOP would: connections can be made, but nothing is
// read, answered or expired. The methods of Server work all the same. In an
// ensemble all endpoints are frozen.
func (s *Server) Freeze() { s.en.freeze(s.en.endpoints...) }

// Thaw lets a frozen server go on. [Server.SetThawOrder] says whether requests that
// came in meanwhile are handled before sessions expire.
func (s *Server) Thaw() { s.en.goOn(s.en.endpoints...) }

// SetThawOrder chooses what leaders do first when they go on after a freeze, from now
// on. At the start it is RequestsFirst. Another value than the constants panics.
func (s *Server) SetThawOrder(o ThawOrder) {
	if o < RequestsFirst || o > SweepFirst {
		panic("zkserver: SetThawOrder: there is no " + o.String())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.en.thawOrder = o
}

// Freeze stops the endpoint as SIGSTOP would: connections can be made, but nothing
// is read or answered. After [Config.SyncLimit] ticks the others give it up; if it
// leads, they choose another leader then, and until then nothing is committed.
func (e *Endpoint) Freeze() { e.s.en.freeze(e) }

// Thaw lets a frozen endpoint go on. If the others have given it up, it does not know
// for a moment: it answers what has piled up from the tree as it was, and closes its
// connections only then, a leader when it counts its followers next, within a tick.
func (e *Endpoint) Thaw() { e.s.en.goOn(e) }

func (en *ensemble) freeze(list ...*Endpoint) {
	en.s.mu.Lock()
	defer en.s.mu.Unlock()
	for _, e := range list {
		if e.thaw != nil || en.s.closed || e.down {
			continue
		}
		e.thaw = make(chan struct{})
		if len(en.endpoints) == 1 || e.in == nil {
			continue
		}
		for _, r := range en.replicas {
			if r.ep == e && r.view == nil {
				en.fallBehind(r)
				r.asleep = true
			}
		}
		e.in.eachSilenced(e, e.in.hush)
	}
	en.reconsider()
}

// eachSilenced visits the followers that are silent towards their leader while e is
// frozen: e itself, or all of them if e leads.
func (l *leadership) eachSilenced(e *Endpoint, visit func(*Endpoint)) {
	for _, f := range l.en.endpoints {
		if f != l.leader && l.has(f) && (f == e || e == l.leader) {
			visit(f)
		}
	}
}

func (en *ensemble) goOn(list ...*Endpoint) {
	en.s.mu.Lock()
	defer en.s.mu.Unlock()
	for _, e := range list {
		if e.thaw == nil {
			continue
		}
		e.unfreeze()
		en.s.agenda.notBefore = en.s.elapsed(time.Now().Add(thawGrace))
		switch l := e.in; {
		case l == nil:
		case e.cutOff:
			if e.doubt == nil {
				en.doubtFor(e, thawGrace)
			}
		default:
			en.awake(e)
			l.eachSilenced(e, l.hear)
		}
	}
	en.reconsider()
	for _, e := range list {
		if l := e.in; l != nil && e.thaw == nil {
			l.goOn(e)
		}
	}
}

// awake brings the replicas of e into step that were behind for no other reason than
// that e was frozen.
func (en *ensemble) awake(e *Endpoint) {
	for _, r := range en.replicas {
		if r.ep == e && r.asleep {
			r.asleep = false
			en.catchUp(r)
		}
	}
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
func (s *Server) Stop() { s.en.stop(s.en.endpoints...) }

// Stop takes the endpoint down as a crash would: its connections and listeners are
// closed, and dials to it refused. It also ends a freeze. If it leads, or a
// majority is left no more, the connections to the others are closed as well; they
// serve again when they have a leader.
func (e *Endpoint) Stop() { e.s.en.stop(e) }

func (en *ensemble) stop(list ...*Endpoint) {
	en.s.mu.Lock()
	var ended []*listener
	var conns []*conn
	for _, e := range list {
		if en.s.closed || e.down {
			continue
		}
		for _, l := range e.listeners {
			l.end()
			ended = append(ended, &listener{l: l.l})
			l.l = nil
		}
		e.listeners = slices.DeleteFunc(e.listeners, func(l *listener) bool { return !l.owned })
		e.down = true
		e.unfreeze()
		conns = append(conns, en.s.hangUpOn(e)...)
		en.leave(e)
	}
	en.reconsider()
	en.s.mu.Unlock()

	for _, l := range ended {
		l.close()
	}
	closeAll(conns)
}

// Start brings a stopped server up again. All sessions have their full timeout
// from now. What [Server.Listen] opened listens on the same port again; if that
// fails the server stays down. A server that runs is left as it is.
func (s *Server) Start() error { return s.en.start(s.en.endpoints...) }

// Start brings a stopped endpoint up again, as [Server.Start] does, with the
// transactions it has missed. It serves at once if there is a leader, and when one
// is elected if not. Sessions have their full timeout from a new leader on.
func (e *Endpoint) Start() error { return e.s.en.start(e) }

func (en *ensemble) start(list ...*Endpoint) error {
	if err := en.s.journal.Failure(); err != nil {
		return err
	}
	en.s.mu.Lock()
	defer en.s.mu.Unlock()
	if en.s.closed {
		return ErrNotServing
	}
	var failed []error
	for _, e := range list {
		if !e.down {
			continue
		}
		if err := en.listenAgain(e); err != nil {
			failed = append(failed, err)
			continue
		}
		e.down, e.lost = false, time.Now()
	}
	en.reconsider()
	return errors.Join(failed...)
}

// listenAgain opens the listeners of e, all or none.
func (en *ensemble) listenAgain(e *Endpoint) error {
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
		e.acceptOwned(entry, opened[i])
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

// goOn does what e was kept from while it was frozen. A follower answers the ping of
// its leader at once.
func (l *leadership) goOn(e *Endpoint) {
	s := l.en.s
	now := s.elapsed(time.Now())
	if e != l.leader {
		if e.overdue && l.has(e) && l.leader.thaw == nil {
			l.report(e)
		}
		l.planCount()
		return
	}
	unheard := slices.ContainsFunc(l.en.endpoints, func(e *Endpoint) bool { return e.in == l && e.overdue })
	grace := thawGrace
	switch s.en.thawOrder {
	case SweepFirst:
		grace = 0
	case RequestsDuringSweep:
		l.sessions.picked = l.sessions.expired(now)
	case RequestsAfterMark:
		l.sessions.picked = l.sessions.expired(now)
		for _, ts := range l.sessions.picked {
			ts.closing = true
		}
	}
	l.sweepFrom = now + grace.Milliseconds()
	if grace == 0 {
		s.sweep(time.Now())
	} else {
		s.setTimer()
	}
	if l.ping == nil && (l.overduePing || unheard) {
		l.pingAfter(grace)
	}
	l.overduePing = false
	l.planCount()
}
