package network

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing/synctest"
	"time"
)

// A Net is the network between clients, which have numbers, and servers. All
// methods but Run may be called from any goroutine of the bubble.
type Net struct {
	rnd  *rand.Rand // of Run alone
	wake chan struct{}
	done chan struct{}
	wg   sync.WaitGroup

	mu      sync.Mutex
	clients []*client
	strikes []*armed
	closed  bool
	frames  int
	hash    uint64
}

// client is what the network knows of one of them.
type client struct {
	number    int
	serial    int // of its connections
	conns     []*Conn
	dials     []*dial
	holeUntil time.Time
	heldUntil time.Time
	noDials   time.Time // until then nothing that is dialed answers
}

type dial struct {
	open   func() (net.Conn, error)
	ctx    context.Context
	result chan dialed // has room for one
	gone   bool        // nobody waits for the result; guarded by the network's mutex
}

type dialed struct {
	conn net.Conn
	err  error
}

// New returns a network for so many clients that does as seed says.
func New(seed uint64, clients int) *Net {
	n := &Net{
		rnd:  rand.New(rand.NewPCG(seed, 0x6e6574)),
		wake: make(chan struct{}, 1),
		done: make(chan struct{}),
	}
	for i := range clients {
		n.clients = append(n.clients, &client{number: i})
	}
	return n
}

// Dialer is how a client connects: by open, when it is its turn.
func (n *Net) Dialer(number int, open func(ctx context.Context, address string) (net.Conn, error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		d := &dial{ctx: ctx, result: make(chan dialed, 1)}
		d.open = func() (net.Conn, error) { return open(ctx, address) }
		n.mu.Lock()
		if n.closed {
			n.mu.Unlock()
			return nil, refused
		}
		c := n.clients[number]
		c.dials = append(c.dials, d)
		n.mu.Unlock()
		n.kick()
		select {
		case r := <-d.result:
			return r.conn, r.err
		case <-ctx.Done():
		}
		n.mu.Lock()
		d.gone = true
		n.mu.Unlock()
		select {
		case r := <-d.result:
			return r.conn, r.err
		default:
			return nil, context.Cause(ctx)
		}
	}
}

var refused = &net.OpError{Op: "dial", Net: "sim", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}

func (n *Net) kick() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Run carries frames until Close. Nobody else in the bubble may call
// synctest.Wait meanwhile.
func (n *Net) Run() {
	defer close(n.done)
	idle := time.NewTimer(time.Hour)
	defer idle.Stop()
	for {
		synctest.Wait()
		step, next, closed := n.choose()
		if closed {
			return
		}
		if step != nil {
			step()
			if d := n.latency(); d > 0 {
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

// latency is how long it takes until the next frame arrives: often it comes at
// the same instant, so that timers have no time to fire in between.
func (n *Net) latency() time.Duration {
	if n.rnd.IntN(3) == 0 {
		return 0
	}
	return time.Duration(1 + n.rnd.IntN(400_000))
}

// choose picks what happens next: the arrival of one of the frames that wait, or
// the success of a dial. If there is nothing now, it says how long to wait at most.
func (n *Net) choose() (step func(), next time.Duration, closed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, 0, true
	}
	now := time.Now()
	var steps []func()
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
			later(silent) // what is dialed gets no answer
		} else if len(c.dials) > 0 {
			steps = append(steps, func() { n.connect(c) })
		}
		for _, conn := range c.conns {
			for dir := range conn.lanes {
				l := &conn.lanes[dir]
				switch {
				case len(l.waiting) == 0:
				case now.Before(l.heldUntil):
					later(l.heldUntil)
				default:
					steps = append(steps, func() { n.arrive(conn, Direction(dir)) })
				}
			}
		}
	}
	if len(steps) == 0 {
		return nil, next, false
	}
	return steps[n.rnd.IntN(len(steps))], 0, false
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// connect lets the oldest dial of a client through.
func (n *Net) connect(c *client) {
	n.mu.Lock()
	d := c.dials[0]
	c.dials = c.dials[1:]
	n.mu.Unlock()
	if d.ctx.Err() != nil {
		return
	}
	server, err := d.open()
	if err != nil {
		n.note(c.number, 0, 'r', 0, 0)
		d.result <- dialed{err: err}
		return
	}
	n.mu.Lock()
	if d.gone || n.closed {
		n.mu.Unlock()
		server.Close()
		d.result <- dialed{err: refused}
		return
	}
	c.serial++
	conn := newConn(n, c, c.serial, server)
	c.conns = append(c.conns, conn)
	n.wg.Go(conn.pump)
	d.result <- dialed{conn: conn}
	n.mu.Unlock()
	n.note(c.number, conn.serial, 'c', 0, 0)
}

// arrive delivers the first frame that waits in a direction.
func (n *Net) arrive(c *Conn, dir Direction) {
	n.mu.Lock()
	l := &c.lanes[dir]
	if c.over || len(l.waiting) == 0 {
		n.mu.Unlock()
		return
	}
	frame := l.waiting[0]
	since := l.since[0]
	l.waiting, l.since = l.waiting[1:], l.since[1:]
	hole := c.hole
	n.mu.Unlock()
	if frame == nil { // the end
		n.note(c.client.number, c.serial, 'e', dir, 0)
		if hole && dir == Down {
			return // nobody hears of it
		}
		n.reset(c)
		return
	}
	xid, op := describe(frame, dir, l.first)
	l.first = false
	n.note(c.client.number, c.serial, 'f', dir, int64(op)<<32|int64(len(frame)))
	if hole {
		return
	}
	s, then := n.strike(c, dir, xid, op, frame)
	for _, f := range then {
		f(c.client.number)
	}
	if len(then) > 0 {
		synctest.Wait()
	}
	switch {
	case s == nil:
		c.deliver(frame, dir)
	case s.Do == Reset:
		n.reset(c)
	case s.Do == ResetAfter:
		c.deliver(frame, dir)
		synctest.Wait()
		n.reset(c)
	case s.Do == Lose:
		time.AfterFunc(s.For, func() { n.reset(c) })
	case s.Do == Stall:
		n.mu.Lock()
		l.waiting, l.since = slices.Insert(l.waiting, 0, frame), slices.Insert(l.since, 0, since)
		l.heldUntil = time.Now().Add(s.For)
		n.mu.Unlock()
	case s.Do == Swallow:
		n.mu.Lock()
		c.hole = true
		n.mu.Unlock()
		time.AfterFunc(s.For, func() { n.reset(c) })
	}
}

// describe tells what a frame is: the xid, and of a request its type.
func describe(frame []byte, dir Direction, first bool) (xid, op int32) {
	if first || len(frame) < 8 {
		return 0, 0
	}
	xid = int32(binary.BigEndian.Uint32(frame[4:]))
	if dir == Up && len(frame) >= 12 {
		op = int32(binary.BigEndian.Uint32(frame[8:]))
	}
	return xid, op
}

// note adds to the fingerprint of what has happened.
func (n *Net) note(client, serial int, what byte, dir Direction, more int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.frames++
	h := fnv.New64a()
	var b [48]byte
	binary.BigEndian.PutUint64(b[0:], n.hash)
	binary.BigEndian.PutUint64(b[8:], uint64(time.Now().UnixNano()))
	binary.BigEndian.PutUint64(b[16:], uint64(client))
	binary.BigEndian.PutUint64(b[24:], uint64(serial))
	binary.BigEndian.PutUint64(b[32:], uint64(what)<<8|uint64(dir))
	binary.BigEndian.PutUint64(b[40:], uint64(more))
	h.Write(b[:])
	n.hash = h.Sum64()
}

// Fingerprint is a hash of all that has been carried, with when: two runs that
// have the same did the same.
func (n *Net) Fingerprint() (hash uint64, frames int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hash, n.frames
}

// Close ends all connections and Run, and waits until nothing is left.
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
