package sim

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
)

// String returns the name of the constant.
func (e Effect) String() string {
	return [...]string{"reset", "reset after", "lose", "stall", "swallow"}[e]
}

// A Strike is a fault that waits for a frame.
type Strike struct {
	Client int // that the frame is from or for; Anyone is any
	Dir    Direction
	Op     int32  // of a request; 0 is any
	Has    string // somewhere in the frame; "" is any
	Nth    int    // of the frames that match; 0 and 1 are the first
	Do     Effect
	For    time.Duration
}

// Anyone is every client.
const Anyone = -1

// String says all but the client.
func (s Strike) String() string {
	has := ""
	if s.Has != "" {
		has = fmt.Sprintf(" with %q", s.Has)
	}
	return fmt.Sprintf("%v frame %d %v of op %d%s, %v", s.Do, max(1, s.Nth), s.Dir, s.Op, has, s.For)
}

// Strike arms s, which strikes once.
func (n *Net) Strike(s Strike) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.strikes = append(n.strikes, &s)
}

const xidWatchEvent = -1

// strike finds the first fault that a frame makes strike. Watch events are not
// lost one by one: no server leaves out one and sends the next.
func (n *Net) strike(client int, dir Direction, xid, op int32, frame []byte) *Strike {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, s := range n.strikes {
		if s.Client != client && s.Client != Anyone || s.Dir != dir || s.Op != 0 && s.Op != op || s.Do == Lose && xid == xidWatchEvent {
			continue
		}
		if !bytes.Contains(frame, []byte(s.Has)) {
			continue
		}
		if s.Nth--; s.Nth > 0 {
			continue
		}
		n.strikes = slices.Delete(n.strikes, i, i+1)
		return s
	}
	return nil
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
