package zkserver

import (
	"cmp"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

func noSession(id int64) error {
	return fmt.Errorf("zkserver: there is no session %#x: %w", id, ErrSessionExpired)
}

// ExpireSession expires a session now: its ephemerals are deleted, watches fire, and its connection
// is closed. Only a leader ends sessions: without one, for example after [Server.Stop], ExpireSession
// changes nothing and returns ErrNotServing.
func (s *Server) ExpireSession(id int64) error {
	s.mu.Lock()
	sess := s.sessions.byID[id]
	switch {
	case s.closed || s.en.current == nil:
		s.mu.Unlock()
		return cmp.Or(s.journal.Failure(), ErrNotServing)
	case sess == nil:
		s.mu.Unlock()
		return noSession(id)
	}
	s.endSession(sess, nil, time.Now())
	s.mu.Unlock()
	return s.persist()
}

// Disconnect closes the connection of a session. The session stays alive, and the client may
// reconnect. Disconnect has no effect on a session without a connection.
func (s *Server) Disconnect(id int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := s.conns.of(id)
	if s.sessions.byID[id] == nil && len(open) == 0 {
		return noSession(id)
	}
	for _, c := range open {
		if !c.hole.Load() {
			c.hangUp()
		}
	}
	return nil
}

// Partition drops the bytes of the session's connections in both directions and keeps the
// connections open. A new connection that asks for the session is also partitioned. Dropped
// requests do not touch the session, so that it expires after its timeout; its client is not told.
// Partition has no effect for id 0, which is no session.
func (s *Server) Partition(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == 0 {
		return // a client asks for a new session with this id
	}
	s.conns.partitioned[id] = true
	for _, c := range s.conns.of(id) {
		c.swallow(id)
	}
}

// Heal ends the partition of a session. Dropped bytes stay lost: Heal closes the connections of the
// session, and the client may reconnect.
func (s *Server) Heal(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns.partitioned, id)
	s.conns.heal(func(c *conn) bool { return s.conns.holes[c] == id && !c.ep.unreachable })
}

func (c *conn) swallow(id int64) {
	s := c.s
	c.hole.Store(true)
	c.handshake.stop()
	s.conns.holes[c] = id
}

// release allows the socket of a black-holed connection to be closed.
func (c *conn) release() {
	s := c.s
	delete(s.conns.holes, c)
	close(c.released)
}

// HangHandshake(true) makes the server accept connections and leave their ConnectRequests
// unanswered for any length of time. HangHandshake(false) closes these connections, and not a
// connection whose ConnectRequest waits for another reason, for example at a deposed leader.
func (s *Server) HangHandshake(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns.hang = on
	if on {
		return
	}
	for _, c := range s.conns.ordered() {
		if c.kept {
			c.hangUp()
		}
	}
}

// DelayEphemeralRemoval delays the deletion of ephemerals by d, for sessions that end from now on.
// The ephemerals are then deleted in a transaction of their own. 0 disables the delay.
func (s *Server) DelayEphemeralRemoval(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions.linger = d
}

// SetNextSequence sets the number of the next sequential child of path to n. The cversion of path
// changes too, because it is the counter, as in a real server. Without a leader SetNextSequence
// changes nothing and returns ErrNotServing.
func (s *Server) SetNextSequence(path string, n int32) error {
	s.mu.Lock()
	node := s.data.Tree.Node(path)
	switch {
	case s.closed || s.en.current == nil:
		s.mu.Unlock()
		return cmp.Or(s.journal.Failure(), ErrNotServing)
	case node == nil:
		s.mu.Unlock()
		return fmt.Errorf("zkserver: SetNextSequence %s: %w", path, ErrNoNode)
	}
	node.SetSequence(n)
	s.journal.Append(func(b []byte) []byte { return tree.AppendStep(b, tree.StepCount, node) })
	s.mu.Unlock()
	return s.persist()
}

// SwapSessionID makes the server answer the next reconnect of session id with the id and password
// of a new session. The old session has no connection until it expires.
func (s *Server) SwapSessionID(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions.byID[id] != nil {
		s.sessions.swap[id] = true
	}
}
