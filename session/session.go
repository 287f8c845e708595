package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// maxAbandoned is how many requests of a session may be unanswered though
// their callers have gone, before further ones wait.
const maxAbandoned = 1024

// A Session is one ZooKeeper session, over however many connections it takes.
// Every operation is bound to it: what is asked of one Session never happens
// under another. When it is lost it stays lost, and Manager.Session gives the
// next. All methods may be called from any goroutine.
type Session struct {
	m    *Manager
	link *link
	hub  *hub

	id     int64
	passwd []byte
	opened time.Time   // when the server gave the id
	known  atomic.Bool // the three above are set
	useful atomic.Bool // a request of a caller was carried out

	hold    context.Context         // what Context returns
	endHold context.CancelCauseFunc // of endContext alone
	end     endNotice
	dead    chan struct{} // no request goes through any more
	why     error         // valid once dead is closed
	ended   sync.Once
	remains bool // the server may still have the session; valid once dead is closed

	seenZxid  atomic.Int64 // the newest zxid in an answer
	eventZxid atomic.Int64 // every event of ours up to this zxid has arrived
	leases    leases
	keeper    *keeper
	janitor   janitor
	wg        sync.WaitGroup

	mu        sync.Mutex
	wire      *wire         // proven to reach the leader; nil while there is none
	change    chan struct{} // closed and replaced when enter should look again
	refuse    error         // why new requests are refused
	abandoned int
	busy      int           // requests and functions that Close waits for
	idle      chan struct{} // closed when busy falls to zero
}

func newSession(m *Manager) *Session {
	s := &Session{m: m, dead: make(chan struct{}), change: make(chan struct{})}
	s.hold, s.endHold = context.WithCancelCause(context.Background())
	s.end.done = make(chan struct{})
	s.leases.init(m.clock)
	s.keeper = &keeper{s: s, v: &s.leases}
	s.hub = newHub(s)
	s.janitor.s, s.janitor.added = s, make(chan struct{}, 1)
	s.link = &link{s: s}
	return s
}

// ID is the session id that the server gave, as EphemeralOwner shows it.
func (s *Session) ID() int64 { return s.id }

// Timeout is the session timeout as negotiated with the servers: the shortest
// that any of them has granted this session. It may differ from the one asked for.
// A connection whose server grants less than 100 ms is not used, and more than 24 hours
// count as 24 hours.
func (s *Session) Timeout() time.Duration {
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	return s.leases.proof.timeout
}

// Context ends when the session is lost or the Manager closed, with a cause
// that wraps ErrLost or ErrClosed; while something is held (see Lease), no
// later than Deadline.
func (s *Session) Context() context.Context { return s.hold }

// Done is Context().Done().
func (s *Session) Done() <-chan struct{} { return s.hold.Done() }

// Err is nil while the session may live, and then why it does not.
func (s *Session) Err() error {
	if s.hold.Err() == nil {
		return nil
	}
	return s.cause()
}

func (s *Session) cause() error { return context.Cause(s.hold) }

// Connection is the number of the connection that requests go over at present,
// zero while there is none. See Watch.
func (s *Session) Connection() uint64 {
	if w := s.currentWire(); w != nil {
		return w.number
	}
	return 0
}

func (s *Session) currentWire() *wire {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wire
}

// expiredAnswer is the ConnectResponse by which a server says that a session
// is gone.
var expiredAnswer = append([]byte{0, 0, 0, 36}, append(make([]byte, 16), append([]byte{0, 0, 0, 16}, make([]byte, 16)...)...)...)

// adjustConnect notes which session go-zookeeper asks for, and puts in the
// newest zxid that we have seen: it has seen hardly any of our answers, and a
// server that is further behind must not take us.
func (s *Session) adjustConnect(frame []byte, asked *int64) []byte {
	d := decoder{b: frame}
	d.take(8)
	d.long()
	timeout := d.int()
	*asked = d.long()
	if d.bad {
		return frame
	}
	b := append([]byte(nil), frame[:8]...)
	b = appendLong(b, s.seenZxid.Load())
	b = appendInt(b, timeout)
	return append(b, frame[20:]...)
}

// shakeHands looks at the ConnectResponse and returns what go-zookeeper may
// see of it. Ahead of anything else on the new connection go the credentials, a
// sync, and the watches.
func (s *Session) shakeHands(w *wire, frame []byte) ([]byte, error) {
	d := decoder{b: frame[4:]}
	d.int()
	timeout, id, passwd := time.Duration(d.int())*time.Millisecond, d.long(), d.buffer()
	if d.bad {
		return nil, fmt.Errorf("%w: to the handshake", errMalformed)
	}
	if readOnly := len(d.b) > 0 && d.bool(); readOnly && id != 0 {
		// It cannot commit anything, and so cannot keep the session alive.
		return nil, errReadOnly
	}
	switch {
	case id == 0 && w.asked == 0:
		return nil, errors.New("the server refused to open a session")
	case id == 0 || s.known.Load() && id != s.id:
		s.link.answered()
		s.lose(fmt.Errorf("%w: the server has expired session %s", ErrLost, sessionID(s.id)), false)
		return expiredAnswer, nil
	case timeout < minTimeout && s.known.Load():
		// The server has shortened the session already, and ends it before another
		// connection could ask for more. So whatever is held is lost now, and not at
		// the deadline that the longer timeout has proven.
		s.lose(fmt.Errorf("%w: %w", ErrLost, &timeoutError{timeout, s.m.cfg.timeout}), true)
		return expiredAnswer, nil
	case timeout <= 0:
		return nil, fmt.Errorf("%w: a session timeout of %v", errMalformed, timeout)
	case timeout < minTimeout:
		return nil, &timeoutError{timeout, s.m.cfg.timeout}
	case timeout > maxTimeout:
		timeout = maxTimeout
		binary.BigEndian.PutUint32(frame[8:], uint32(timeout.Milliseconds())) // go-zookeeper's timers, too
	}
	w.record, w.pace = s.leases.connected(w.askedAt, timeout), timeout/contactFraction
	if !s.known.Load() {
		s.id, s.passwd, s.opened = id, append([]byte(nil), passwd...), time.Now()
		s.known.Store(true)
		s.m.firstID.Do(func() { s.m.jitter.seed(id) })
		s.wg.Go(s.keep)
	}
	s.introduce(w)
	return frame, nil
}

// begin puts a connection to use that is authenticated.
func (s *Session) begin(w *wire) {
	s.greet(w)
	s.hub.rearm(w, s.eventZxid.Load())
}

// sawZxid notes the zxid of an answer. The server has sent every event of our
// watches up to that zxid ahead of the answer, provided that all watches were
// armed. Only the reader of the newest connection calls it.
func (s *Session) sawZxid(zxid int64, armed bool) {
	if zxid > s.seenZxid.Load() {
		s.seenZxid.Store(zxid)
	}
	if armed && zxid > s.eventZxid.Load() {
		s.eventZxid.Store(zxid)
	}
}

func (s *Session) greet(w *wire) {
	sync := &call{op: opSync, done: make(chan struct{}), answered: func(c *call) {
		if c.code != 0 {
			err := fmt.Errorf("sync: %w", errorOfCode(c.code))
			if c.code == codeWantsSASL {
				err = fmt.Errorf("%w: %w (use session.WithSASL)", ErrAuthFailed, errorOfCode(c.code))
				s.m.cfg.log.Error("credentials refused", zap.String("server", w.server), zap.Error(err))
				s.m.giveUp(err)
			}
			w.end(err)
			return
		}
		s.attach(w)
	}}
	w.limit(s.link.bound(), theSync)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	for _, a := range s.m.cfg.auth {
		w.frame(xidAuth, opAuth, func(b []byte) []byte {
			return appendBuffer(appendString(appendInt(b, 0), a.scheme), a.auth)
		})
	}
	w.enqueue(sync, func(b []byte) []byte { return appendString(b, "/") })
}

func (s *Session) refuseAuth(code int32) {
	s.m.cfg.log.Error("credentials refused", zap.Int32("code", code))
	s.m.giveUp(ErrAuthFailed)
}

// attach puts a connection to use.
func (s *Session) attach(w *wire) {
	w.limit(0, "")
	s.link.established()
	s.m.servers.working()
	s.m.everConnected.Store(true)
	s.keeper.commitFirst(w)
	s.mu.Lock()
	// A connection that has ended meanwhile was detached before it came here.
	if isClosed(s.dead) || w.isClosed() {
		s.mu.Unlock()
		return
	}
	s.wire = w
	s.wakeLocked()
	s.leases.kickKeeper()
	// Under s.mu, so that attach and detach are told in the order in which they
	// happened.
	s.m.setState(s, Connected)
	s.mu.Unlock()
	s.m.lines.log(s.m.cfg.log, zap.InfoLevel, "connected", zap.String("server", w.server), sessionField(s.id))
}

// detach takes a connection that has ended out of use.
func (s *Session) detach(w *wire, why error) {
	s.link.broken(w, why)
	s.mu.Lock()
	was := s.wire == w
	if was {
		s.wire = nil
		s.m.setState(s, Suspended)
	}
	s.mu.Unlock()
	if was {
		s.m.lines.log(s.m.cfg.log, zap.InfoLevel, "disconnected", zap.String("server", w.server), sessionField(s.id), zap.Error(why))
	}
}

// wakeLocked makes everyone in enter look again; s.mu is held.
func (s *Session) wakeLocked() {
	close(s.change)
	s.change = make(chan struct{})
}

// enter waits until a request can be sent, and counts it as under way. One that
// is urgent, because it cleans up after abandoned ones, is not held up by them.
func (s *Session) enter(ctx context.Context, urgent bool) (*wire, error) {
	if ctx.Err() != nil {
		return nil, Cancelled(ctx)
	}
	for {
		w, change, err := s.tryEnter(urgent)
		if w != nil || err != nil {
			return w, err
		}
		select {
		case <-change:
		case <-s.dead:
			return nil, s.why
		case <-ctx.Done():
			return nil, s.cancelledEntering(ctx)
		}
	}
}

// cancelledEntering is Cancelled for a call that could not send its request.
func (s *Session) cancelledEntering(ctx context.Context) error {
	s.mu.Lock()
	full := s.wire != nil && s.abandoned >= maxAbandoned
	s.mu.Unlock()
	if full {
		return CancelledWaiting(ctx, fmt.Errorf("the server has not answered %d earlier requests whose callers have gone", maxAbandoned))
	}
	return s.m.cancelledOffline(ctx)
}

// tryEnter is enter for callers that must not wait. Without a connection to send
// on, w is nil. change is closed when another attempt may lead to another result.
func (s *Session) tryEnter(urgent bool) (w *wire, change <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return nil, nil, s.refuse
	}
	if s.wire == nil || !urgent && s.abandoned >= maxAbandoned {
		return nil, s.change, nil
	}
	s.busy++
	return s.wire, s.change, nil
}

func (s *Session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	if s.busy == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// Busy delays Manager.Close, though not beyond the Deadline, until done is
// called: for work that should end in order. It fails once the session is over.
func (s *Session) Busy() (done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return nil, s.refuse
	}
	s.busy++
	return sync.OnceFunc(s.leave), nil
}

// lose ends the session for everyone, once. It does not block. remains says
// whether the server may still have it.
func (s *Session) lose(why error, remains bool) {
	s.ended.Do(func() {
		s.mu.Lock()
		s.refuse = why
		s.mu.Unlock()
		s.why, s.remains = why, remains && s.known.Load()
		s.leases.endHolds(why) // before the functions of NotifyEnd end their leases
		s.endContext(why)
		// Before dead is closed, which makes the Manager go on to the next session
		// and listen to this one no more.
		s.m.setState(s, Lost)
		close(s.dead)
		s.janitor.close()
		s.link.stop()
		s.hub.end(why)
	})
}

// close ends the session in order: it takes no new requests, waits for the
// requests under way, and closes the session on the server.
func (s *Session) close(why error) {
	s.mu.Lock()
	if s.refuse == nil {
		s.refuse = why
	}
	idle := make(chan struct{})
	s.idle = idle
	if s.busy == 0 {
		close(idle)
		s.idle = nil
	}
	s.wakeLocked()
	s.mu.Unlock()
	s.leases.endHolds(why) // before the functions of NotifyEnd end their leases
	s.endContext(why)
	if s.known.Load() {
		wait := time.NewTimer(max(s.leases.patience(), time.Nanosecond))
		defer wait.Stop()
		select {
		case <-idle:
		case <-wait.C:
		case <-s.dead:
		}
	}
	s.link.shutdown()
	s.lose(why, false)
	s.wg.Wait()
}
