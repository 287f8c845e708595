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

// ExpireSession expires a session now, as if its time had come: its ephemerals go,
// watches fire, and its connection is closed.
func (s *Server) ExpireSession(id int64) error {
	s.mu.Lock()
	sess := s.sessions.byID[id]
	switch {
	case s.closed:
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

// Disconnect closes the connection of a session. The session lives on, and the
// client may come back. A session that is not connected is left as it is.
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

// Partition makes the bytes of the session's connections go nowhere, in both
// directions, without closing anything. A new connection that asks for the session
// goes the same way. The session is not touched by what is lost, and so expires in
// time; even then its client sees nothing.
func (s *Server) Partition(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns.partitioned[id] = true
	for _, c := range s.conns.of(id) {
		c.swallow(id)
	}
}

// Heal ends the partition of a session. What was swallowed stays so: the
// connections it had are closed, and the client may come back on a new one.
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

// release lets the socket of a black-holed connection be closed.
func (c *conn) release() {
	s := c.s
	delete(s.conns.holes, c)
	close(c.released)
}

// HangHandshake makes the server accept connections and swallow their
// ConnectRequests without an answer, for as long as the client likes. Switching it
// off closes the connections that hang.
func (s *Server) HangHandshake(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns.hang = on
	if on {
		return
	}
	for _, c := range s.conns.ordered() {
		if c.hung {
			c.hangUp()
		}
	}
}

// DelayEphemeralRemoval makes the ephemerals of sessions that end from now on stay
// for d. They go in a transaction of their own. 0 is back to normal.
func (s *Server) DelayEphemeralRemoval(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions.linger = d
}

// SetNextSequence makes n the number of the next sequential child of path. As a
// real server keeps no other counter, the cversion of path changes with it.
func (s *Server) SetNextSequence(path string, n int32) error {
	s.mu.Lock()
	node := s.data.Tree.Node(path)
	switch {
	case s.closed:
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

// SwapSessionID answers the next reconnect of session id with the id and password
// of a new session. The old one is left without a connection until it expires.
func (s *Server) SwapSessionID(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions.byID[id] != nil {
		s.sessions.swap[id] = true
	}
}
