package network

import (
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

// A Net is the network between servers and clients. Clients have numbers from 0.
// Any goroutine of the bubble may call the methods of a Net.
type Net struct {
	schedule Schedule
	wake     chan struct{}
	done     chan struct{}
	wg       sync.WaitGroup

	mu       sync.Mutex
	clients  []*client
	strikes  []*armed
	closed   bool
	steps    int
	hash     uint64
	keeps    bool
	recorded []Frame
	possible []step // what ready has returned last
}

// A client is one of the processes that the network connects to the servers.
type client struct {
	number    int
	serial    int   // number of its newest connection
	session   int64 // named by the newest ConnectResponse
	conns     []*Conn
	dials     []*dial
	holeUntil time.Time
	heldUntil time.Time
	noDials   time.Time     // no dial is answered before
	distance  time.Duration // the least time of a frame on its way
}

// New returns a network for a number of clients. Run makes it work.
func New(schedule Schedule, clients int) *Net {
	n := &Net{
		schedule: schedule,
		wake:     make(chan struct{}, 1),
		done:     make(chan struct{}),
	}
	for i := range clients {
		n.clients = append(n.clients, &client{number: i})
	}
	return n
}

// SetDistance makes each frame from and to a client take at least d.
func (n *Net) SetDistance(client int, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clients[client].distance = d
}

func (n *Net) kick() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Run delivers frames until Close. No other goroutine of the bubble may call
// synctest.Wait at the same time.
func (n *Net) Run() {
	defer close(n.done)
	idle := time.NewTimer(time.Hour)
	defer idle.Stop()
	for {
		synctest.Wait()
		steps, next, closed := n.ready()
		if closed {
			return
		}
		if len(steps) > 0 {
			n.do(steps[n.schedule.choose(steps)])
			if d := n.schedule.latency(); d > 0 {
				time.Sleep(d)
			}
			continue
		}
		if next <= 0 {
			next = time.Hour
		}
		idle.Reset(next)
		select {
		case <-n.wake:
		case <-idle.C:
		}
	}
}

// ready returns everything that can happen now: the arrival of the first frame of
// each lane, and the success of the oldest dial of each client. If there is
// nothing, next is the time until there may be, or 0 if only a new frame can help.
func (n *Net) ready() (steps []step, next time.Duration, closed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, 0, true
	}
	now := time.Now()
	steps = n.possible[:0]
	defer func() { n.possible = steps }()
	later := func(t time.Time) {
		if d := t.Sub(now); d > 0 && (next == 0 || d < next) {
			next = d
		}
	}
	for _, c := range n.clients {
		if now.Before(c.heldUntil) {
			later(c.heldUntil)
			continue
		}
		if silent := latest(c.holeUntil, c.noDials); now.Before(silent) {
			later(silent) // dials get no answer
		} else if len(c.dials) > 0 {
			steps = append(steps, step{since: c.dials[0].since, client: c})
		}
		for _, conn := range c.conns {
			for dir := range conn.lanes {
				l := &conn.lanes[dir]
				if len(l.waiting) == 0 {
					continue
				}
				if due := latest(l.heldUntil, l.waiting[0].since.Add(c.distance)); now.Before(due) {
					later(due)
				} else {
					steps = append(steps, step{since: l.waiting[0].since, conn: conn, dir: Direction(dir)})
				}
			}
		}
	}
	return steps, next, false
}

// do makes a step happen.
func (n *Net) do(s step) {
	if s.conn == nil {
		n.connect(s.client)
		return
	}
	n.arrive(s.conn, s.dir)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// arrive delivers the first frame of a lane, or applies the Strike that hits the
// frame.
func (n *Net) arrive(c *Conn, dir Direction) {
	n.mu.Lock()
	l := &c.lanes[dir]
	if c.over || len(l.waiting) == 0 {
		n.mu.Unlock()
		return
	}
	next := l.pop()
	bytes, hole := next.bytes, c.hole
	if bytes == nil {
		n.mu.Unlock()
		n.note(c.client.number, c.serial, 'e', dir, 0)
		if hole && dir == Down {
			return // the client never sees it
		}
		n.reset(c)
		return
	}
	frame := c.describe(bytes, dir)
	if n.keeps && !hole {
		if n.recorded == nil {
			n.recorded = make([]Frame, 0, 128)
		}
		n.recorded = append(n.recorded, frame)
	}
	n.mu.Unlock()
	n.note(c.client.number, c.serial, 'f', dir, int64(frame.Op)<<32|int64(len(bytes)))
	if hole {
		return
	}
	s, then := n.strike(c, frame, bytes)
	for _, f := range then {
		f(frame)
	}
	if len(then) > 0 {
		synctest.Wait()
	}
	switch {
	case s == nil:
		c.deliver(bytes, dir)
	case s.Do == Reset:
		n.reset(c)
	case s.Do == ResetAfter:
		c.deliver(bytes, dir)
		synctest.Wait()
		n.reset(c)
	case s.Do == Lose:
		time.AfterFunc(s.For, func() { n.reset(c) })
	case s.Do == Stall:
		n.mu.Lock()
		l.waiting = slices.Insert(l.waiting, 0, next)
		l.heldUntil = time.Now().Add(s.For)
		c.undescribe(bytes, frame)
		if n.keeps {
			n.recorded = n.recorded[:len(n.recorded)-1]
		}
		n.mu.Unlock()
	case s.Do == Swallow:
		n.mu.Lock()
		c.hole = true
		n.mu.Unlock()
		time.AfterFunc(s.For, func() { n.reset(c) })
	}
}

// Record makes the network keep every frame that has its turn from now on, but for
// frames that are swallowed.
func (n *Net) Record() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.keeps = true
}

// Frames returns the frames since Record, in the order in which they arrived.
func (n *Net) Frames() []Frame {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.recorded)
}

// note adds an event to the fingerprint.
func (n *Net) note(client, serial int, what byte, dir Direction, more int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.steps++
	n.hash = mix(n.hash, uint64(time.Now().UnixNano()), uint64(client), uint64(serial), uint64(what)<<8|uint64(dir), uint64(more))
}

// mix returns a hash of values: FNV-1a of their bytes in big-endian order.
func mix(values ...uint64) uint64 {
	hash := uint64(14695981039346656037)
	for _, v := range values {
		for shift := 56; shift >= 0; shift -= 8 {
			hash = (hash ^ v>>shift&0xff) * 1099511628211
		}
	}
	return hash
}

// Fingerprint returns a hash over every event of the network with its time, and
// the number of these events. Two runs with the same hash went the same way.
func (n *Net) Fingerprint() (hash uint64, events int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hash, n.steps
}

// Close ends all connections and Run. It returns when no goroutine of the network
// is left.
func (n *Net) Close() {
	n.mu.Lock()
	n.closed = true
	var all []*Conn
	var dials []*dial
	for _, c := range n.clients {
		all = append(all, c.conns...)
		dials = append(dials, c.dials...)
		c.dials = nil
	}
	n.mu.Unlock()
	for _, d := range dials {
		d.result <- dialed{err: refused}
	}
	for _, c := range all {
		n.reset(c)
	}
	n.kick()
	<-n.done
	n.wg.Wait()
}

// Session returns the id of the session that a client was given last, or 0.
func (n *Net) Session(client int) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.clients[client].session
}
