package network

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// An Effect is what happens to a frame that a Strike hits.
type Effect int

const (
	// Reset ends the connection; the frame and all that is on its way are lost.
	Reset Effect = iota
	// ResetAfter ends it when the frame has arrived and done what it does.
	ResetAfter
	// Lose loses the frame, though not what follows for a time; then it resets the
	// connection.
	Lose
	// Stall holds the frame, and those behind it, for a time.
	Stall
	// Swallow loses it and all that follows, both ways, and resets the connection
	// after a time.
	Swallow
	// Pass does nothing to it. Another Strike may hit the same frame.
	Pass
)

// String returns the name of the constant.
func (e Effect) String() string {
	return [...]string{"reset", "reset after", "lose", "stall", "swallow", "pass"}[e]
}

// A Strike is a fault that waits for a frame. What it says of a request holds,
// when it is to hit a frame that goes down, for the request that this answers.
type Strike struct {
	Client int // that the frame is from or for; Anyone is any
	Dir    Direction
	Op     int32  // of a request; 0 is any
	Has    string // somewhere in the request; "" is any
	And    string // likewise
	Lacks  string // nowhere in the request, if not ""
	Nth    int    // of the frames that match; 0 and 1 are the first
	Do     Effect
	For    time.Duration
	Then   func(client int) // called when it strikes, before the frame goes on, if not nil
}

// An armed Strike may know the answer that it waits for.
type armed struct {
	Strike
	conn *Conn
	xid  int32
}

// Anyone is every client.
const Anyone = -1

// String says all but the client.
func (s Strike) String() string {
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

// Strike arms s, which strikes once. To disarm it is nothing if it has struck.
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

const xidWatchEvent = -1

// strike finds the first fault that a frame makes strike, and what is to be called
// before. Watch events are not lost one by one: no server leaves out one and sends
// the next.
func (n *Net) strike(c *Conn, dir Direction, xid, op int32, frame []byte) (effect *Strike, then []func(int)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.strikes = slices.DeleteFunc(n.strikes, func(s *armed) bool {
		hit := (effect == nil || s.Do == Pass) && s.hits(c, dir, xid, op, frame)
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

// hits says whether this is the frame that a Strike waits for.
func (s *armed) hits(c *Conn, dir Direction, xid, op int32, frame []byte) bool {
	if s.Client != c.client.number && s.Client != Anyone || s.Do == Lose && xid == xidWatchEvent {
		return false
	}
	if s.Dir == Down && s.asks() {
		if dir == Up && (s.conn == nil || s.conn.over) && s.fits(op, frame) {
			if s.Nth--; s.Nth <= 0 {
				s.conn, s.xid = c, xid
			}
		}
		return dir == Down && s.conn == c && s.xid == xid
	}
	if dir != s.Dir || !s.fits(op, frame) {
		return false
	}
	s.Nth--
	return s.Nth <= 0
}

// asks says whether a request must be of some kind.
func (s *armed) asks() bool { return s.Op != 0 || s.Has != "" || s.And != "" || s.Lacks != "" }

// fits says whether a request is of that kind.
func (s *armed) fits(op int32, frame []byte) bool {
	return (s.Op == 0 || s.Op == op) && bytes.Contains(frame, []byte(s.Has)) && bytes.Contains(frame, []byte(s.And)) &&
		(s.Lacks == "" || !bytes.Contains(frame, []byte(s.Lacks)))
}

// Disarm takes back all that has not struck, and lets go of what is held.
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

// Disconnect resets the connections of a client.
func (n *Net) Disconnect(client int) {
	n.mu.Lock()
	conns := slices.Clone(n.clients[client].conns)
	n.mu.Unlock()
	for _, c := range conns {
		n.reset(c)
	}
}

// Partition makes all that a client sends, and is sent, go nowhere for d. Its
// connections are reset when that is over.
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

// Strand lets a client open no new connection for d; those that it has live on.
func (n *Net) Strand(client int, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.clients[client]
	c.noDials = latest(c.noDials, time.Now().Add(d))
}

// Hold stops a client's frames for d, both ways and without a loss, as if it did
// not run.
func (n *Net) Hold(client int, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.clients[client]
	if until := time.Now().Add(d); until.After(c.heldUntil) {
		c.heldUntil = until
	}
}
