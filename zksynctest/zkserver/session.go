package zkserver

import (
	"crypto/subtle"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/journal"
	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// session is guarded by the server's mu.
type session struct {
	id       int64
	password [16]byte
	// timeout is the one with which the session was created, and with which every new
	// leader begins. That of a connection can differ, and is known to its leader alone.
	timeout    time.Duration
	negotiated time.Duration // over its latest connection
	conn       *conn         // the latest; nil while the client is away
	conns      []*conn       // all that are open, at different endpoints
	dead       bool
	local      bool // of an endpoint that only reads; the ensemble does not know it
	traffic    *trafficCount
}

// firstSessionID is where the server with that number begins to count.
func firstSessionID(now time.Time, server int) int64 {
	return int64(uint64(now.UnixMilli())<<24>>8 | uint64(server)<<56)
}

// newID is the id of the next session that begins on e.
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

// attach makes c a connection of the session, and the latest.
func (sess *session) attach(c *conn) {
	c.handshake.stop()
	c.sess, sess.conn = sess, c
	sess.negotiated = c.timeout
	sess.conns = append(sess.conns, c)
	c.traffic.Store(sess.traffic)
}

// openSession creates a session, which is a transaction of its own, for a client of e.
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

// endSession is the transaction with which a session closes or expires: its
// ephemerals go, all at one zxid, and its connections are closed. That which asked
// for it, if there is one, is left to the caller.
func (s *Server) endSession(sess *session, asked *conn, now time.Time) {
	sess.dead = true
	delete(s.sessions.byID, sess.id)
	if l := s.en.current; l != nil {
		l.sessions.forget(sess.id)
	}
	if len(s.sessions.byID) == 0 {
		s.setTimer()
	}
	delete(s.sessions.swap, sess.id)
	delete(s.en.losing, sess.id)
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

// leftover is the ephemerals of a session that is over, until they go too.
type leftover struct {
	due     int64 // on the server's clock
	session int64
}

// Traffic is what a session has cost over all its connections.
type Traffic struct {
	Requests, BytesIn, BytesOut int64
}

type trafficCount struct{ requests, in, out atomic.Int64 }

// trafficKept is how many sessions that are over Traffic remembers.
const trafficKept = 4096

type trafficLog struct {
	counts map[int64]*trafficCount
	ids    []int64 // the oldest first
}

// add remembers a session, and forgets the oldest that is over if there are many.
func (l *trafficLog) add(sess *session, living map[int64]*session) {
	if l.counts == nil {
		l.counts = map[int64]*trafficCount{}
	}
	l.counts[sess.id] = sess.traffic
	l.ids = append(l.ids, sess.id)
	for excess := len(l.ids) - trafficKept - len(living); excess > 0; {
		oldest := l.ids[0]
		if l.ids = l.ids[1:]; living[oldest] != nil {
			l.ids = append(l.ids, oldest) // its turn comes again
			continue
		}
		delete(l.counts, oldest)
		excess--
	}
}

func (sess *session) admits(password []byte) bool {
	return subtle.ConstantTimeCompare(password, sess.password[:]) == 1
}

// A sessionTable has the sessions of the server that have not ended, and what is known of
// others.
type sessionTable struct {
	byID      map[int64]*session
	traffic   trafficLog
	secret    [16]byte       // of the passwords of sessions that are not kept
	swap      map[int64]bool // sessions that get another id with their next reconnect
	linger    time.Duration  // for which the ephemerals of a session outlive it
	leftovers []leftover
}
