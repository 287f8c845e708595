package session

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// A connection handles the answers and events of one connection of a session.
type connection struct {
	*wire.Conn
	s       *Session
	link    *link
	sasl    *saslState // until the connection is authenticated; nil without WithSASL
	record  *record
	greeted bool // the server has answered the first request; only the reader uses this field
	armed   bool // the server has armed all watches again; only the reader uses this field
}

// newConnection returns a wire.Conn that reports to the session.
func newConnection(l *link, sasl *saslState, cfg wire.Config) *wire.Conn {
	s := l.s
	w := &connection{s: s, link: l, sasl: sasl}
	cfg.Handler, cfg.MaxAnswer = w, s.m.cfg.maxAnswer
	cfg.Hello = wire.ConnectRequest{Timeout: max(s.m.cfg.timeout, time.Millisecond), Password: make([]byte, 16)}
	if s.known.Load() {
		zxid := s.seenZxid.Load()
		if l.closing {
			zxid = 0 // a server that is far behind can close the session, too
		}
		cfg.Hello = wire.ConnectRequest{Zxid: zxid, Timeout: s.Timeout(), Session: s.id, Password: s.passwd}
	}
	w.Conn = wire.New(cfg)
	return w.Conn
}

// Connected checks the ConnectResponse and introduces the client. It and the following methods
// implement wire.Handler.
func (w *connection) Connected(r *wire.ConnectResponse) error {
	s, timeout := w.s, r.Timeout
	if r.ReadOnly && r.Session != 0 {
		// A read-only server cannot commit, and so cannot keep the session alive.
		return errReadOnly
	}
	switch {
	case r.Session == 0 && r.Asked == 0:
		return errors.New("the server refused to open a session")
	case w.link.closing && r.Session != 0 && r.Session != s.id:
		return fmt.Errorf("%w: the server answered for session %s", wire.ErrMalformed, sessionID(r.Session))
	// A server that opens another session in place of ours has expired ours.
	case r.Session == 0 || s.known.Load() && r.Session != s.id:
		w.link.attempts.answered()
		s.lose(fmt.Errorf("%w: the server has expired session %s", ErrLost, sessionID(s.id)), false)
		w.link.stop() // also if the session was over before
		return errRefused
	case w.link.closing:
		timeout = s.Timeout() // any timeout suffices to close the session
	case timeout < minTimeout && s.known.Load():
		// The server has shortened the session already. It ends the session before
		// another connection could ask for a longer timeout. So every hold is lost now,
		// and not at the deadline that the longer timeout has proven.
		s.lose(fmt.Errorf("%w: %w", ErrLost, &timeoutError{timeout, s.m.cfg.timeout}), true)
		return errRefused
	case timeout <= 0:
		return fmt.Errorf("%w: a session timeout of %v", wire.ErrMalformed, timeout)
	case timeout < minTimeout:
		return &timeoutError{timeout, s.m.cfg.timeout}
	case timeout > maxTimeout:
		timeout = maxTimeout
	}
	// The time of the request, not of the answer: a server may have held the answer back.
	w.record = s.leases.connected(r.AskedAt, timeout)
	if !s.known.Load() {
		s.id, s.passwd, s.opened = r.Session, append([]byte(nil), r.Password...), time.Now()
		s.known.Store(true)
		s.m.firstID.Do(func() { s.m.jitter.seed(s.id) })
		// Only the keeper notices that the session is over by the local clock.
		s.wg.Go(func() {
			if err := s.keeper.run(); err != nil {
				s.lose(err, true)
			}
		})
	}
	// The credentials, a sync and the watches are the first frames on the new connection.
	w.introduce()
	return nil
}

// introduce authenticates a new connection by SASL, and then puts the connection to use.
func (w *connection) introduce() {
	// In the reader's goroutine, as the answers, so no other frame is sent earlier.
	bound := w.link.bound()
	switch {
	case w.sasl != nil:
	case w.link.closing:
		w.Limit(bound, hung("closeSession", bound))
		for _, a := range w.s.m.cfg.auth {
			w.Authenticate(a.scheme, a.auth)
		}
		w.Send(&wire.Request{Op: wire.OpCloseSession, Own: true, Then: func(c *wire.Call) {
			err := failureOf(c)
			if err == nil {
				w.link.stop()
			}
			// After a refusal, the next connection shows whether the session exists.
			w.End(err)
		}})
		return
	default:
		w.greet(bound)
		w.s.hub.rearm(w.Conn, w.s.eventZxid.Load(), func() { w.armed = true })
		return
	}
	w.Limit(bound, hung("the SASL exchange", bound))
	w.Send(&wire.Request{Op: wire.OpSASL, Own: true, Record: w.sasl.record(), Then: func(c *wire.Call) {
		if c.Err != nil {
			return
		}
		more, err := w.sasl.answer(c.Code, c.Body)
		switch {
		case err != nil:
			w.End(err)
		case !more:
			w.sasl = nil
			fallthrough
		default:
			w.introduce()
		}
	}})
}

// hung returns the error of a connection on which an answer did not arrive in time.
func hung(what string, bound time.Duration) error {
	return fmt.Errorf("%s was not answered within %v", what, roundTime(bound))
}

// greet sends the credentials and a sync. It sends a transaction without effect instead if the server cannot
// tell whether it is behind what the callers have seen: an event names no zxid, and a new session none of what
// its predecessors have seen. Some servers open a session without a transaction (localSessionsEnabled).
func (w *connection) greet(bound time.Duration) {
	name, first, outcome := "sync", syncRoot(), failureOf
	if w.s.ahead.Load() {
		name, first, outcome = "transaction", quorumRoot(), quorumOf
	}
	w.Limit(bound, hung("the "+name+" after the handshake", bound))
	// The server handles the credentials first, so the sync and all later requests have
	// their permissions.
	for _, a := range w.s.m.cfg.auth {
		w.Authenticate(a.scheme, a.auth)
	}
	// The answer to the sync shows that the server reaches its leader, and no older data
	// follows. Until then callers have no use for the connection. A leader that was deposed
	// without noticing answers a sync, and not a transaction.
	first.Then = func(c *wire.Call) {
		switch err := outcome(c); {
		case err == nil:
			w.greeted = true
			w.s.ahead.Store(false)
			w.attach()
		case c.Code == codeWantsSASL:
			w.End(fmt.Errorf("%w: %w (use session.WithSASL)", ErrAuthFailed, err))
		default:
			w.End(fmt.Errorf("%s: %w", name, err))
		}
	}
	w.Send(first)
}

// attach puts a connection to use.
func (w *connection) attach() {
	s := w.s
	w.Limit(0, nil)
	w.link.attempts.established()
	s.m.servers.working()
	s.m.everConnected.Store(true)
	// Before the gate opens: the requests of callers would go ahead of the commit.
	s.keeper.commitFirst(w.Conn)
	if s.gate.attach(w.Conn, func() {
		signal(s.leases.kick)
		s.setState(Connected)
	}) {
		s.m.lines.log(s.m.cfg.log, zap.InfoLevel, "connected", zap.String("server", w.Server), sessionField(s.id))
	}
}

// Header records the zxid of an answer.
func (w *connection) Header(zxid int64, code int32, ours bool) error {
	s := w.s
	// Load and Store suffice: only the reader of the newest connection calls Header.
	if zxid > s.seenZxid.Load() {
		s.seenZxid.Store(zxid)
	}
	// The answer shows every event before it. An answer to credentials has no zxid. A refusal of the
	// first request proves no quorum, though it may have a zxid.
	if zxid > 0 && w.greeted {
		s.ahead.Store(false)
	}
	// If all watches are armed, the server has sent every event of our watches up to this
	// zxid before the answer. A connection on which the SASL exchange or setWatches failed
	// can still have such answers in its buffer, and has not armed the watches.
	if w.armed && zxid > s.eventZxid.Load() {
		s.eventZxid.Store(zxid)
	}
	// The answers to credentials are signs of life and no evidence. The answers to our calls
	// reach the leases by Done.
	if !ours {
		s.leases.hear()
		return nil
	}
	if refusals[code].hangUp {
		// The code is about the connection, and the request was not carried out. The end
		// of the connection ends the call, and the next connection repeats the call if a
		// repeat is safe.
		return errorOfCode(code)
	}
	return nil
}

// Event handles an event.
func (w *connection) Event(record []byte) error {
	// The zxid of the event does not count as seen: further events of the same transaction
	// may follow, and after a reconnect the server must send the events that did not arrive.
	w.s.ahead.Store(true)
	w.s.leases.hear()
	return w.s.hub.event(w.Number, record)
}

// Authenticated handles the answer to credentials.
func (w *connection) Authenticated(code int32) error {
	err := credentialError(code)
	if err != nil {
		w.End(err) // before the reader does, which would call the refusal a failure of a read
	}
	return err
}

// Done handles the outcome of a request.
func (w *connection) Done(c *wire.Call) {
	if c.Err == nil {
		if c.Code == 0 && c.OfCaller() {
			w.s.useful.Store(true)
		}
		// Before the caller learns of the answer: Hold then finds the proof that the answer
		// provides.
		w.s.leases.answered(w.record, c)
	}
	w.s.m.hangUps.done(c)
	w.s.m.observe(c, w.Server)
}

// TooLarge returns the error of an answer of size bytes.
func (w *connection) TooLarge(size, limit int) error {
	return fmt.Errorf("%w: %d bytes, where %d are allowed: read less at once, or raise session.WithMaxAnswer", ErrAnswerTooLarge, size, limit)
}

// TooSlow returns the error of an answer if only got of its size bytes have arrived.
func (w *connection) TooSlow(got, size int, took time.Duration) error {
	speed := float64(got) / max(took, time.Millisecond).Seconds()
	return fmt.Errorf("%w: %d of %d bytes in %v, %.0f bytes/s, with a session timeout of %v: read less at once, or raise session.WithTimeout",
		ErrAnswerTooSlow, got, size, roundTime(took), speed, w.s.Timeout())
}

// Silent logs that the server has not answered for a while.
func (w *connection) Silent(waited time.Duration, requests int) {
	w.s.m.cfg.log.Warn("the server did not answer", zap.String("server", w.Server), sessionField(w.s.id),
		zap.Duration("waited", roundTime(waited)), zap.Int("requests", requests))
}

// observe reports a finished request to the observer.
func (m *shared) observe(c *wire.Call, server string) {
	m.requests.Add(1)
	done := m.cfg.observer.RequestDone
	if done == nil {
		return
	}
	event := RequestDone{Op: wire.OpName(c.Op), Server: server, Latency: time.Since(c.Sent), Class: classOfCall(c), Own: c.Own}
	if !c.Own {
		event.Path = c.Path
	}
	done(event)
}

// Ended takes the connection out of use.
func (w *connection) Ended(why error) {
	s := w.s
	w.link.broken(w.Server, why)
	if s.gate.detach(w.Conn, func() { s.setState(Suspended) }) {
		w.link.logEnd(w.Server, why)
	}
}
