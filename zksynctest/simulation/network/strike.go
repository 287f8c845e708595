package network

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// An Effect is the treatment of a frame that a Strike hits.
type Effect int

const (
	// Reset breaks the connection. The frame and all frames on their way are lost.
	Reset Effect = iota
	// ResetAfter breaks the connection when the frame has arrived and everything
	// that the frame causes has happened.
	ResetAfter
	// Lose loses this one frame, and breaks the connection after a time.
	Lose
	// Stall holds up the frame and the frames behind it for a time.
	Stall
	// Swallow loses this frame and all later frames in both directions, and breaks
	// the connection after a time.
	Swallow
	// Pass lets the frame through. Another Strike may hit the same frame.
	Pass
)

// String returns the name of the constant.
func (e Effect) String() string {
	return [...]string{"reset", "reset after", "lose", "stall", "swallow", "pass"}[e]
}

// A Strike is a fault that waits for a frame. It either names one frame by At, or
// describes a request: then a Strike with Dir Down hits the answer to that request.
type Strike struct {
	At     *Address // the frame; if not nil, Client to Nth mean nothing
	Client int      // that sends or receives the frame; Anyone is any
	Dir    Direction
	Op     int32  // of a request; 0 is any
	Has    string // somewhere in the request; "" is any
	And    string // likewise
	Lacks  string // nowhere in the request, if not ""
	Nth    int    // of the frames that match; 0 and 1 are the first
	Do     Effect
	For    time.Duration
	Then   func(Frame) // if not nil, called when the Strike hits, before the frame goes on
}

// An armed Strike may know the answer that it waits for.
type armed struct {
	Strike
	conn *Conn
	xid  int32
}

// Anyone stands for every client.
const Anyone = -1

// String describes the Strike without its client.
func (s Strike) String() string {
	if s.At != nil {
		return fmt.Sprintf("%v frame %v, %v", s.Do, *s.At, s.For)
	}
	has := ""
	for _, word := range []string{s.Has, s.And} {
		if word != "" {
			has += fmt.Sprintf(" with %q", word)
		}
	}
	if s.Lacks != "" {
		has += fmt.Sprintf(" without %q", s.Lacks)
	}
	return fmt.Sprintf("%v frame %d %v of op %d%s, %v", s.Do, max(1, s.Nth), s.Dir, s.Op, has, s.For)
}

// Strike arms s, which strikes once. The function disarm does nothing if s has
// struck.
func (n *Net) Strike(s Strike) (disarm func()) {
	a := &armed{Strike: s}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.strikes = append(n.strikes, a)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.strikes = slices.DeleteFunc(n.strikes, func(other *armed) bool { return other == a })
	}
}

// strike finds the first Strike that a frame sets off, and the functions to call
// before. Watch events are never lost one by one, because no server leaves out one
// event and sends the next.
func (n *Net) strike(c *Conn, frame Frame, bytes []byte) (effect *Strike, then []func(Frame)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.strikes = slices.DeleteFunc(n.strikes, func(s *armed) bool {
		hit := (effect == nil || s.Do == Pass) && s.hits(c, frame, bytes)
		if !hit {
			return false
		}
		if s.Then != nil {
			then = append(then, s.Then)
		}
		if s.Do != Pass {
			effect = &s.Strike
		}
		return true
	})
	return effect, then
}

// hits reports whether this is the frame that a Strike waits for.
func (s *armed) hits(c *Conn, frame Frame, bytes []byte) bool {
	if s.Do == Lose && frame.Xid == xidWatchEvent {
		// An address may name an answer in one run and a watch event in another, because both may
		// be sent at the same instant.
		return false
	}
	if s.At != nil {
		return *s.At == frame.Address
	}
	if s.Client != frame.Client && s.Client != Anyone {
		return false
	}
	if s.Dir == Down && s.asks() {
		if frame.Dir == Up && (s.conn == nil || s.conn.over) && s.fits(frame, bytes) {
			if s.Nth--; s.Nth <= 0 {
				s.conn, s.xid = c, frame.Xid
			}
		}
		return frame.Dir == Down && s.conn == c && s.xid == frame.Xid
	}
	if frame.Dir != s.Dir || !s.fits(frame, bytes) {
		return false
	}
	s.Nth--
	return s.Nth <= 0
}

// asks reports whether s describes a request.
func (s *armed) asks() bool { return s.Op != 0 || s.Has != "" || s.And != "" || s.Lacks != "" }

// fits reports whether s describes a frame. A ConnectRequest has no type.
func (s *armed) fits(frame Frame, bytes []byte) bool {
	return (s.Op == 0 || s.Op == frame.Op && frame.Dir == Up) && contains(bytes, s.Has) && contains(bytes, s.And) &&
		(s.Lacks == "" || !contains(bytes, s.Lacks))
}

func contains(frame []byte, text string) bool { return bytes.Contains(frame, []byte(text)) }

// Disarm removes all Strikes, and ends every Partition, Strand, Hold and Stall.
func (n *Net) Disarm() {
	n.mu.Lock()
	n.strikes = nil
	var cut []*Conn
	for _, c := range n.clients {
		if time.Now().Before(c.holeUntil) {
			c.holeUntil = time.Time{}
		}
		c.heldUntil, c.noDials = time.Time{}, time.Time{}
		for _, conn := range c.conns {
			conn.lanes[Up].heldUntil, conn.lanes[Down].heldUntil = time.Time{}, time.Time{}
			if conn.hole {
				cut = append(cut, conn)
			}
		}
	}
	n.mu.Unlock()
	for _, conn := range cut {
		n.reset(conn)
	}
	n.kick()
}

// Disconnect breaks the connections of a client.
func (n *Net) Disconnect(client int) {
	n.mu.Lock()
	conns := slices.Clone(n.clients[client].conns)
	n.mu.Unlock()
	for _, c := range conns {
		n.reset(c)
	}
}

// Partition loses everything that a client sends or receives for d. After that the
// client's connections break.
func (n *Net) Partition(client int, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.clients[client]
	if until := time.Now().Add(d); until.After(c.holeUntil) {
		c.holeUntil = until
	}
	for _, conn := range c.conns {
		conn.hole = true
		time.AfterFunc(d, func() { n.reset(conn) })
	}
}

// Strand keeps a client from opening connections for d. Its present connections
// live on.
func (n *Net) Strand(client int, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.clients[client]
	c.noDials = latest(c.noDials, time.Now().Add(d))
}

// Hold stops the frames of a client for d in both directions, without losing any,
// as if the client did not run.
func (n *Net) Hold(client int, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.clients[client]
	if until := time.Now().Add(d); until.After(c.heldUntil) {
		c.heldUntil = until
	}
}
