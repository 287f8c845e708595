package session

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A Session is one ZooKeeper session, over however many connections it takes.
// Every operation is bound to it: what is asked of one Session never happens
// under another. When it is lost it stays lost, and Manager.Session gives the
// next. All methods may be called from any goroutine.
type Session struct {
	m        *shared
	setState func(State)
	identity
	gate     gate
	requests requester
	link     *link
	hub      *hub
	leases   leases
	keeper   *keeper
	janitor  janitor

	hold    context.Context // what Context returns
	end     endNotice
	ended   sync.Once
	remains bool // the server may still have the session; valid once gate.dead is closed

	seenZxid  atomic.Int64 // the newest zxid in an answer
	eventZxid atomic.Int64 // every event of ours up to this zxid has arrived
	wg        sync.WaitGroup
}

func newSession(m *shared, setState func(State)) *Session {
	s := &Session{m: m, setState: setState}
	s.gate.init(m)
	s.hold = s.end.init()
	s.leases.init(m, &s.identity, s.hold)
	s.requests = requester{m, &s.gate, &s.leases}
	s.keeper = &keeper{m: m, gate: &s.gate, v: &s.leases}
	s.hub = newHub(m, &s.gate)
	s.janitor.init(m, &s.gate, &s.identity)
	s.link = &link{s: s}
	return s
}

// ID is the session id that the server gave, as EphemeralOwner shows it.
func (s *Session) ID() int64 { return s.id }

// Timeout is the session timeout as negotiated with the servers: the shortest
// that any of them has granted this session. It may differ from the one asked for.
// A connection whose server grants less than 100 ms is not used, and more than 24 hours
// count as 24 hours.
func (s *Session) Timeout() time.Duration { return s.leases.timeout() }

// Context ends when the session is lost or the Manager closed, with a cause
// that wraps ErrLost or ErrClosed; while something is held (see Lease), no
// later than Deadline.
func (s *Session) Context() context.Context { return s.hold }

// Done is Context().Done().
func (s *Session) Done() <-chan struct{} { return s.hold.Done() }

// Err is nil while the session may live, and then why it does not.
func (s *Session) Err() error { return context.Cause(s.hold) }

// Connection is the number of the connection that requests go over at present,
// zero while there is none. See Watch.
func (s *Session) Connection() uint64 {
	if w := s.gate.current(); w != nil {
		return w.Number()
	}
	return 0
}

// keep runs the keeper.
func (s *Session) keep() {
	if err := s.keeper.run(); err != nil {
		s.lose(err, true)
	}
}

// lose ends the session for everyone, once. It does not block. remains says
// whether the server may still have it.
func (s *Session) lose(why error, remains bool) {
	s.ended.Do(func() {
		s.gate.lose(why)
		s.gate.why, s.remains = why, remains && s.known.Load()
		s.leases.endHolds(why) // before the functions of NotifyEnd end their leases
		s.end.notify(why)
		// Before dead is closed, which makes the Manager go on to the next session
		// and listen to this one no more.
		s.setState(Lost)
		close(s.gate.dead)
		s.janitor.close()
		s.link.stop()
		s.hub.end(why)
	})
}

// close ends the session in order: it takes no new requests, waits for the
// requests under way, and closes the session on the server.
func (s *Session) close(why error) {
	idle := s.gate.close(why)
	s.leases.endHolds(why) // before the functions of NotifyEnd end their leases
	s.end.notify(why)
	if s.known.Load() {
		wait := time.NewTimer(max(s.leases.patience(), time.Nanosecond))
		defer wait.Stop()
		select {
		case <-idle:
		case <-wait.C:
		case <-s.gate.dead:
		}
	}
	s.link.shutdown()
	s.lose(why, false)
	s.wg.Wait()
}
