package zkserver

import (
	"crypto/subtle"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/journal"
	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// session is a client session. The server's mu guards it.
type session struct {
	id       int64
	password [16]byte
	// timeout is the timeout with which the session was created; every new leader begins with it.
	// The timeout of a connection can differ; only its leader knows that timeout.
	timeout    time.Duration
	negotiated time.Duration // negotiated on the latest connection
	conn       *conn         // latest connection; nil while the client is disconnected
	conns      []*conn       // open connections, to different endpoints
	dead       bool
	local      bool // belongs to a read-only endpoint; the ensemble does not know it
	traffic    *trafficCount
}

// firstSessionID returns the first session id of the server with that number.
func firstSessionID(now time.Time, server int) int64 {
	return int64(uint64(now.UnixMilli())<<24>>8 | uint64(server)<<56)
}

// newID returns the id of the next session that is created on e.
func (e *Endpoint) newID() int64 {
	id := e.nextID
	e.nextID++
	return id
}

func newSession(id int64, password [16]byte, timeout time.Duration) *session {
	return &session{id: id, password: password, timeout: timeout, negotiated: timeout, traffic: new(trafficCount)}
}

// on lists the session's connections to r.
func (sess *session) on(r *replica) []*conn {
	var list []*conn
	for _, c := range sess.conns {
		if c.rep == r {
			list = append(list, c)
		}
	}
	return list
}

// attach makes c the latest connection of the session.
func (sess *session) attach(c *conn) {
	c.handshake.stop()
	c.sess, sess.conn = sess, c
	sess.negotiated = c.timeout
	sess.conns = append(sess.conns, c)
	c.traffic.Store(sess.traffic)
}

// openSession creates a session for a client of e, in a transaction of its own.
func (s *Server) openSession(l *leadership, e *Endpoint, timeout time.Duration, now time.Time) *session {
	s.data.NextZxid()
	sess := newSession(e.newID(), newPassword(), timeout)
	s.sessions.byID[sess.id] = sess
	s.sessions.traffic.add(sess, s.sessions.byID)
	l.sessions.track(sess, e, s.elapsed(now))
	s.planSweep(l, l.sessions.tracked[sess.id].bucket)
	l.noteCreated(sess)
	s.journal.AppendSession(s.data.Zxid, sess.id, journal.Session{Password: sess.password, Timeout: timeout})
	return sess
}

// endSession is the transaction that closes or expires a session: it deletes the session's
// ephemerals at one zxid and closes the session's connections. If a connection asked for the end,
// the caller closes that connection.
func (s *Server) endSession(sess *session, asked *conn, now time.Time) {
	sess.dead = true
	delete(s.sessions.byID, sess.id)
	if l := s.en.current; l != nil {
		l.sessions.forget(sess.id)
	}
	// Otherwise the timer would fire once more for nothing.
	if len(s.sessions.byID) == 0 {
		s.setTimer()
	}
	delete(s.sessions.swap, sess.id)
	delete(s.en.losing, sess.id)
	// Deferred: the connections get the events of the deleted ephemerals before they end.
	defer func() {
		s.tellEnd(sess, asked)
		s.endLag(sess.id)
	}()
	t := s.data.Begin(tree.SuperUser, now.UnixMilli(), false)
	t.Ended = sess.id
	if s.sessions.linger > 0 && len(s.data.Tree.EphemeralsOf(sess.id)) > 0 {
		s.sessions.leftovers = append(s.sessions.leftovers, leftover{s.elapsed(now) + s.sessions.linger.Milliseconds(), sess.id})
		s.setTimer()
		s.journal.AppendTxn(t)
		return
	}
	s.removeEphemerals(t, sess.id)
}

func (s *Server) removeEphemerals(t *tree.Txn, session int64) {
	t.RemoveEphemerals(session)
	s.fire(t)
}

// leftover is an ended session whose ephemerals are deleted later.
type leftover struct {
	due     int64 // time on the server's clock
	session int64
}

// Traffic is the traffic of a session over all its connections.
type Traffic struct {
	Requests, BytesIn, BytesOut int64
}

type trafficCount struct{ requests, in, out atomic.Int64 }

// trafficKept is the number of ended sessions that trafficLog remembers.
const trafficKept = 4096

type trafficLog struct {
	counts map[int64]*trafficCount
	ids    []int64 // the oldest first
}

// add adds a session. Above the limit it forgets the oldest session that has ended.
func (l *trafficLog) add(sess *session, living map[int64]*session) {
	if l.counts == nil {
		l.counts = map[int64]*trafficCount{}
	}
	l.counts[sess.id] = sess.traffic
	l.ids = append(l.ids, sess.id)
	for excess := len(l.ids) - trafficKept - len(living); excess > 0; {
		oldest := l.ids[0]
		if l.ids = l.ids[1:]; living[oldest] != nil {
			l.ids = append(l.ids, oldest) // still alive: move it to the end
			continue
		}
		delete(l.counts, oldest)
		excess--
	}
}

func (sess *session) admits(password []byte) bool {
	return subtle.ConstantTimeCompare(password, sess.password[:]) == 1
}

// A sessionTable holds the sessions of the server that have not ended, and related state.
type sessionTable struct {
	byID      map[int64]*session
	traffic   trafficLog
	secret    [16]byte       // key of the passwords of local sessions
	swap      map[int64]bool // sessions whose next reconnect gets another id
	linger    time.Duration  // delay between the end of a session and the deletion of its ephemerals
	leftovers []leftover
}
