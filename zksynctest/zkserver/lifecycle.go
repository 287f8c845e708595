package zkserver

import (
	"errors"
	"net"
	"slices"
	"time"
)

// Freeze stops the server like SIGSTOP: clients can connect, but the server reads, answers and
// expires nothing. The methods of Server still work. In an ensemble Freeze freezes all endpoints; the
// methods that change the tree fail with ErrNotServing there once the endpoints have lost their leader.
func (s *Server) Freeze() { s.en.freeze(s.en.endpoints...) }

// Thaw resumes a frozen server. [Server.SetThawOrder] chooses whether the server handles waiting
// requests before it expires sessions.
func (s *Server) Thaw() { s.en.goOn(s.en.endpoints...) }

// SetThawOrder chooses, from now on, the first action of a leader that resumes after a freeze. The
// default is RequestsFirst. SetThawOrder panics for a value that is not one of the constants.
func (s *Server) SetThawOrder(o ThawOrder) {
	if o < RequestsFirst || o > SweepFirst {
		panic("zkserver: SetThawOrder: there is no " + o.String())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.en.thawOrder = o
}

// Freeze stops the endpoint like SIGSTOP: clients can connect, but the endpoint reads and answers
// nothing. After [Config.SyncLimit] ticks the other endpoints give it up. If it leads, they elect
// another leader then, and nothing is committed before.
func (e *Endpoint) Freeze() { e.s.en.freeze(e) }

// Thaw resumes a frozen endpoint. An endpoint that the others have given up does not notice at
// once: it first answers the waiting requests from the tree as of the freeze. Then a follower
// closes its connections, and a leader closes its connections when it next counts its followers,
// within a tick.
func (e *Endpoint) Thaw() { e.s.en.goOn(e) }

func (en *ensemble) freeze(list ...*Endpoint) {
	en.s.mu.Lock()
	defer en.s.mu.Unlock()
	for _, e := range list {
		if e.thaw != nil || en.s.closed || e.down {
			continue
		}
		e.thaw = make(chan struct{})
		en.fallSilent(e)
	}
	en.reconsider()
}

// fallSilent makes endpoint e, which is frozen, miss the commits and the pings of its leadership.
func (en *ensemble) fallSilent(e *Endpoint) {
	if len(en.endpoints) == 1 || e.in == nil {
		return
	}
	// A replica that lags already has the older view, and asleep would end its lag at the thaw.
	for _, r := range en.replicas {
		if r.ep == e && r.view == nil {
			en.fallBehind(r)
			r.asleep = true
		}
	}
	e.in.eachSilenced(e, e.in.hush)
}

// eachSilenced visits the followers that the freeze of e silences: e itself, or all followers if e
// leads.
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

// awake brings those replicas of e up to date that were behind only because e was frozen.
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

// frozen returns nil while the endpoint is not frozen, and otherwise a channel that is closed at the
// end of the freeze.
func (e *Endpoint) frozen() <-chan struct{} {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	return e.thaw
}

// Stop stops the server like a crash: it closes connections and listeners, and dials are refused.
// The server keeps the tree, the sessions and the zxid, and no session expires until
// [Server.Start]. Stop also ends a freeze. In an ensemble Stop stops all endpoints.
func (s *Server) Stop() { s.en.stop(s.en.endpoints...) }

// Stop stops the endpoint like a crash: it closes the endpoint's connections and listeners, and
// dials to the endpoint are refused. Stop also ends a freeze. If the endpoint leads, or if no
// majority is left, the connections to the other endpoints are closed as well; these endpoints
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

// Start starts a stopped server again. All sessions get their full timeout from now on. Listeners
// of [Server.Listen] listen on the same ports again; if a listener fails, Start returns its error
// and the server stays stopped. Start has no effect on a running server.
func (s *Server) Start() error { return s.en.start(s.en.endpoints...) }

// Start starts a stopped endpoint again, like [Server.Start], with the transactions that it has
// missed. The endpoint serves at once if there is a leader, and otherwise after the next election.
// A new leader gives sessions their full timeout.
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

// listenAgain opens all listeners of e, or none if one fails.
func (en *ensemble) listenAgain(e *Endpoint) error {
	var opened []net.Listener
	for _, entry := range e.listeners {
		l, err := net.Listen("tcp", entry.addr.String())
		if err != nil {
			// All or none: a server that listens on a part of its ports would look started.
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

// Restart calls Stop and then Start.
func (s *Server) Restart() error {
	s.Stop()
	return s.Start()
}

// Restart calls Stop and then Start. The other endpoints notice: see [Endpoint.Stop].
func (e *Endpoint) Restart() error {
	e.Stop()
	return e.Start()
}

// goOn runs the actions that were due while e was frozen. A follower answers the ping of its leader
// at once.
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
