package session

import (
	"bytes"
	"container/list"
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
	remains bool // the server may still have the session; valid once gate.over has ended

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
	s.hub = &hub{m: m, gate: &s.gate, entries: make(map[watchKey]*watchEntry), idle: list.New()}
	s.janitor = janitor{m: m, gate: &s.gate, id: &s.identity, wg: &s.wg, added: make(chan struct{}, 1)}
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
		return w.Number
	}
	return 0
}

// Deadline is until when the session is proven alive: no server ends it before,
// unless an administrator does. The Deadline moves on when a transaction of the session is
// answered, and passes while the session has no transactions. While a Lease is
// held it is kept ahead, and the Session's context ends if it passes. It is the
// zero time before the first transaction.
func (s *Session) Deadline() time.Time { return s.leases.deadline() }

// Lease opens a lease.
func (s *Session) Lease() *Lease {
	s.m.holds.Store(true)
	return &Lease{v: &s.leases}
}

// NotifyEnd has f called once, with the cause, when the Session's Context ends: before
// the session is closed on the server, and so before anybody else can be granted what
// this session holds. context.AfterFunc does not promise that, since it calls its
// function in another goroutine. f must not block, and must not call NotifyEnd. After
// stop, f is not called any more unless it is being called.
//
// If the Context has ended already, NotifyEnd fails with its cause and does not call f.
func (s *Session) NotifyEnd(f func(cause error)) (stop func(), err error) {
	stop, ok := s.end.add(f)
	if !ok {
		return nil, s.Err()
	}
	return stop, nil
}

// Busy delays Manager.Close, though not beyond the Deadline, until done is
// called: for work that should end in order. It fails once the session is over.
func (s *Session) Busy() (done func(), err error) {
	if err := s.gate.hold(); err != nil {
		return nil, err
	}
	return sync.OnceFunc(s.gate.leave), nil
}

// Pause waits before an attempt is repeated that failed because of something other
// than load, and returns at once in the rounds 0 and 1: the way to a new connection
// has pauses of its own. Later pauses grow to a second, with jitter, in case that
// the attempt itself breaks the connection, or that the answers contradict each
// other. It fails when ctx or the session ends.
func (s *Session) Pause(ctx context.Context, round int) error {
	return s.requests.pause(ctx, round)
}

// StartWait is Manager.StartWait.
func (s *Session) StartWait(op, path string, reason func(context.Context) error) *Wait {
	return s.m.StartWait(op, path, reason)
}

// Discard removes a znode in the background, whatever its version. It is repeated
// over lost connections, and when the server refuses it for a transient or an
// unknown reason. The channel is closed when the znode is gone, when the session is
// over, or when the server has refused the removal for good, which is logged.
func (s *Session) Discard(path string) <-chan struct{} {
	return s.janitor.discard(&chore{paths: []string{path}})
}

// DiscardOwn is Discard for an ephemeral of this session that holds certain data, or
// any data if data is nil. It leaves a znode of the same name alone that has another
// owner or other data.
func (s *Session) DiscardOwn(path string, data []byte) <-chan struct{} {
	return s.janitor.discard(&chore{paths: []string{path}, own: true, data: bytes.Clone(data)})
}

// lose ends the session for everyone, once. It does not block. remains says
// whether the server may still have it.
func (s *Session) lose(why error, remains bool) {
	s.ended.Do(func() {
		s.gate.lose(why)
		s.remains = remains && s.known.Load()
		s.leases.endHolds(why) // before the functions of NotifyEnd end their leases
		s.end.notify(why)
		// Before gate.over ends, which makes the Manager go on to the next session
		// and listen to this one no more.
		s.setState(Lost)
		s.gate.end(why)
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
		case <-s.gate.over.Done():
		}
	}
	s.link.shutdown()
	s.lose(why, false)
	s.wg.Wait()
}
