package session

import (
	"bytes"
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// A Session is one ZooKeeper session, over as many connections as necessary. Every
// operation is bound to its Session: a request that was made under one Session never runs
// under another. A lost Session stays lost, and Manager.Session returns the next one. All
// methods may be called from any goroutine.
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

	hold    context.Context // the result of Context
	end     endNotice
	ended   sync.Once
	remains bool // the server may still have the session; valid when gate.over has ended

	seenZxid  atomic.Int64 // the newest zxid in an answer
	eventZxid atomic.Int64 // every event of ours up to this zxid has arrived
	ahead     atomic.Bool  // callers may have seen a later state than seenZxid; see greet
	wg        sync.WaitGroup
}

func newSession(m *shared, setState func(State)) *Session {
	s := &Session{m: m, setState: setState}
	s.gate.init(m)
	s.hold = s.end.init()
	s.leases.init(m, &s.identity, s.hold)
	s.requests = requester{m, &s.gate, &s.leases}
	s.keeper = &keeper{m: m, gate: &s.gate, v: &s.leases, wg: &s.wg}
	s.hub = &hub{m: m, entries: make(map[watchKey]*watchEntry), idle: list.New()}
	s.janitor = janitor{m: m, gate: &s.gate, id: &s.identity, wg: &s.wg, added: make(chan struct{}, 1)}
	s.link = &link{s: s}
	return s
}

// ID returns the id that the server gave the session, as in EphemeralOwner.
func (s *Session) ID() int64 { return s.id }

// Timeout returns the negotiated session timeout: the shortest that any server has
// granted this session. It may differ from WithTimeout. A connection whose server grants
// less than 100 ms is not used, and more than 24 hours count as 24 hours.
func (s *Session) Timeout() time.Duration { return s.leases.timeout() }

// Context returns a context that ends when the session is lost or the Manager closed,
// with a cause that wraps ErrLost or ErrClosed. While a Lease is held, the context ends
// at the Deadline at the latest.
func (s *Session) Context() context.Context { return s.hold }

// Done returns Context().Done().
func (s *Session) Done() <-chan struct{} { return s.hold.Done() }

// Err returns nil while the session may live, and otherwise the reason why it ended.
func (s *Session) Err() error { return context.Cause(s.hold) }

// Connection returns the number of the connection that carries requests at present, or
// zero while the session has no connection. See Watch.
func (s *Session) Connection() uint64 {
	if w := s.gate.current(); w != nil {
		return w.Number
	}
	return 0
}

// Deadline returns the time until which the session is proven alive: no server ends the
// session earlier, unless an administrator does. The Deadline moves on when a transaction
// of the session is answered, and passes while the session makes no transactions. While a
// Lease is held, the session keeps the Deadline ahead, and the Session's context ends if
// the Deadline passes. Before the first transaction the Deadline is the zero time.
func (s *Session) Deadline() time.Time { return s.leases.deadline() }

// Lease opens a lease.
func (s *Session) Lease() *Lease {
	s.m.holds.Store(true)
	return &Lease{v: &s.leases}
}

// NotifyEnd registers f to be called once, with the cause, when the Session's Context
// ends. f returns before the session is closed on the server, and so before any other
// client can be granted a hold of this session. f must not block, and must not call
// NotifyEnd. After stop, f is not called any more. A call that has begun continues.
//
// If the Context has ended already, NotifyEnd returns its cause and does not call f.
func (s *Session) NotifyEnd(f func(cause error)) (stop func(), err error) {
	// context.AfterFunc would call f in another goroutine, perhaps after the session has
	// been closed on the server.
	stop, ok := s.end.register(f)
	if !ok {
		return nil, s.Err()
	}
	return stop, nil
}

// Busy delays Manager.Close until done is called, as long as Close says. Use it for
// work that should end in order. Busy returns an error if the session is over.
func (s *Session) Busy() (done func(), err error) {
	if err := s.gate.hold(); err != nil {
		return nil, err
	}
	// Once: a second call would make Close return ahead of other work.
	return sync.OnceFunc(s.gate.leave), nil
}

// Pause waits before a failed attempt is repeated, if load is not the reason of the
// failure. In the rounds 0 and 1 it returns at once. Later pauses grow to a second, with
// jitter. Pause returns an error when ctx or the session ends.
func (s *Session) Pause(ctx context.Context, round int) error {
	return s.requests.pause(ctx, round)
}

// StartWait is Manager.StartWait.
func (s *Session) StartWait(op, path string, reason func(context.Context) error) *Wait {
	return s.m.StartWait(op, path, reason)
}

// Discard removes a znode in the background, regardless of its version. The removal is
// repeated over lost connections, and when the server refuses it for a transient or an
// unknown reason. The channel is closed when the znode is gone, when the session is over,
// or when the removal is impossible: the server has refused it for good, or path is invalid
// or above the limit of WithMaxRequest. Then the reason is logged, and the channel, which has a
// buffer of one element, receives the reason before it is closed.
//
// If the permission is missing to remove an ephemeral of this session that may be read, or whose name is made by
// Protect, Discard tries again after the refusal was received, at intervals that grow to five minutes,
// until that very znode is gone or the session is over.
func (s *Session) Discard(path string) <-chan error {
	return s.janitor.discard(&chore{paths: []string{path}})
}

// DiscardOwn is like Discard, for an ephemeral of this session with the given data, or
// with any data if data is nil. It does not touch a znode of the same name that has
// another owner or other data. Between the look at the znode and its removal, only the
// version protects a znode that replaces it. A znode that may not be read stays until the
// session ends.
func (s *Session) DiscardOwn(path string, data []byte) <-chan error {
	return s.janitor.discard(&chore{paths: []string{path}, own: true, data: bytes.Clone(data)})
}

// DiscardCreated is like DiscardOwn, for the ephemeral of this session that was created by the transaction
// czxid. If the znode may not be read, the removal is tried again as in Discard.
func (s *Session) DiscardCreated(path string, czxid int64) <-chan error {
	return s.DiscardIf(path, func(stat *zk.Stat) bool { return stat.Czxid == czxid })
}

// DiscardIf is like DiscardCreated, for the first ephemeral of this session that the janitor finds at path and for whose
// Stat judge returns true. judge may be called in any goroutine, and must not block.
func (s *Session) DiscardIf(path string, judge func(*zk.Stat) bool) <-chan error {
	return s.janitor.discard(&chore{paths: []string{path}, own: true, judge: judge})
}

// lose ends the session, once. It does not block. remains reports whether the server may
// still have the session.
func (s *Session) lose(why error, remains bool) {
	s.ended.Do(func() {
		// First: a caller that sees Context end must find its requests refused.
		s.gate.lose(why)
		s.remains = remains && s.known.Load()
		s.leases.endHolds(why) // before the functions of NotifyEnd end their leases
		s.end.notify(why)
		// Before gate.over ends: its end makes the Manager open the next session, and the
		// Manager then ignores the states of this session.
		s.setState(Lost)
		// The waiting calls return now. Their callers find the reason in Err, because
		// Context has ended.
		s.gate.end(why)
		s.janitor.refuseChores()
		s.link.stop()
		s.hub.end(why)
	})
}

// close closes the session in order: it refuses new requests, waits for the requests in
// flight, and closes the session on the server.
func (s *Session) close(why error) {
	idle := s.gate.close(why)
	s.leases.endHolds(why) // before the functions of NotifyEnd end their leases
	s.end.notify(why)
	// By now the functions under Do and Run have learnt of the end, and can return while
	// Close waits for them.
	patient, giveUp := context.WithTimeout(context.Background(), s.leases.patience())
	defer giveUp()
	select {
	case <-idle:
	case <-patient.Done():
	case <-s.gate.over.Done():
	}
	// The holds have ended by now: from here on the server may give the locks away.
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	closed := s.link.shutdown()
	s.lose(why, !closed)
	// The connection may have ended before the answer, or the server may have refused.
	if s.remains {
		closeOnServer(ctx, s)
	}
	s.wg.Wait()
	// If the session was lost while Close waited, functions may still run.
	select {
	case <-idle:
	case <-patient.Done():
	}
}
