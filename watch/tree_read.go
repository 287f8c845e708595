package watch

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// maxReads is how many requests of a Cache are in flight at most: enough to keep
// a server busy over a network of some milliseconds.
const maxReads = 256

// A job is one side of a node that is to be read.
type job struct {
	n    *node
	side int
}

// begin reads everything anew by another session: nothing is watched any more.
func (c *Cache) begin(s *session.Session) {
	c.mu.Lock()
	defer c.unlock()
	c.s = s
	c.generation++
	c.queue = nil
	c.tally.restart()
	for _, n := range c.nodes {
		for k := range n.sides {
			n.sides[k] = side{refused: n.sides[k].refused}
		}
	}
	// From the top, so that what has vanished is found out early.
	for level := []*node{c.top}; len(level) > 0; {
		var below []*node
		for _, n := range level {
			c.want(n, dataSide, 0)
			c.want(n, listSide, 0)
			for _, child := range n.children {
				below = append(below, child)
			}
		}
		level = below
	}
	close(c.turn)
	c.turn = make(chan struct{})
}

// want has a side read: now, or again if it is just being read. mu is held.
func (c *Cache) want(n *node, k int, epoch uint64) {
	sd := &n.sides[k]
	switch {
	case n.gone || c.closing:
	case sd.busy:
		if sd.reading && (!sd.again || epoch < sd.next) {
			sd.again, sd.next = true, epoch
		}
		c.hasten(sd, epoch)
	default:
		if sd.armed {
			c.given = append(c.given, sd.w)
		}
		sd.busy, sd.armed, sd.epoch = true, false, epoch
		c.tally.add(epoch)
		c.queue = append(c.queue, job{n, k})
		if c.working < maxReads {
			c.working++
			c.workers.Go(c.work)
		}
	}
}

// need has a side read that is neither watched nor about to be read.
func (c *Cache) need(n *node, k int, epoch uint64) {
	switch sd := &n.sides[k]; {
	case sd.busy:
		sd.doubt = sd.reading
		c.hasten(sd, epoch)
	case !sd.armed:
		c.want(n, k, epoch)
	}
}

// hasten makes what is to be read anyway part of an older epoch: somebody has
// waited for it for longer than was known.
func (c *Cache) hasten(sd *side, epoch uint64) {
	if epoch < sd.epoch {
		c.tally.add(epoch)
		c.tally.done(sd.epoch)
		sd.epoch = epoch
	}
}

// work reads until there is nothing left to read.
func (c *Cache) work() {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.queue = nil
			c.working--
			c.mu.Unlock()
			return
		}
		j := c.queue[0]
		c.queue = c.queue[1:]
		sd := &j.n.sides[j.side]
		if j.n.gone {
			c.tally.done(sd.epoch)
			c.mu.Unlock()
			continue
		}
		sd.reading, sd.asked, sd.doubt = true, c.tally.epoch, false
		s, generation := c.s, c.generation
		c.mu.Unlock()
		c.read(s, generation, j)
	}
}

// An answer is what a read has found.
type answer struct {
	state State    // of the data side
	names []string // of the list side
	w     *session.Watch
	err   error
}

func (c *Cache) ask(s *session.Session, j job) (a answer) {
	if j.side == listSide {
		a.names, _, a.w, a.err = s.WatchChildren(c.ctx, j.n.path)
		return a
	}
	for {
		data, stat, w, err := s.WatchData(c.ctx, j.n.path)
		if err == nil {
			return answer{state: State{Path: j.n.path, Exists: true, Data: data, Stat: *stat}, w: w}
		}
		if !errors.Is(err, zk.ErrNoNode) || j.n != c.top {
			return answer{err: err}
		}
		// The root alone is waited for: any other is announced by its parent.
		w, err = awaitCreation(c.ctx, s, j.n.path)
		if err != nil || w != nil {
			return answer{state: State{Path: j.n.path}, w: w, err: err}
		}
	}
}

func (c *Cache) read(s *session.Session, generation uint64, j job) {
	a := c.ask(s, j)
	n, sd := j.n, &j.n.sides[j.side]
	if a.w != nil {
		// An event from now on finds the side being read, and has it read again.
		a.w.Notify(func(ev zk.Event) { c.event(j, generation, ev) })
	}
	c.mu.Lock()
	defer c.unlock()
	if generation != c.generation {
		return // its watch has ended with its session
	}
	over := errors.Is(a.err, session.ErrLost) || errors.Is(a.err, session.ErrClosed)
	if a.err != nil && (over || s.Err() != nil || c.ctx.Err() != nil) {
		return // the next generation, if there is one, begins at the top
	}
	sd.reading, sd.busy = false, false
	epoch := sd.epoch
	if a.w != nil && (n.gone || sd.again) {
		c.given = append(c.given, a.w)
		a.w = nil
	}
	if n.gone {
		c.tally.done(epoch)
		return
	}
	sd.armed, sd.w = a.w != nil, a.w
	if j.side == dataSide {
		c.applyData(n, a, epoch)
	} else {
		c.applyList(n, a, epoch)
	}
	if sd.again && !n.gone {
		sd.again = false
		c.want(n, j.side, sd.next)
	}
	if sd.doubt && a.err != nil && !errors.Is(a.err, zk.ErrNoNode) {
		c.need(n, j.side, epoch) // a refusal leaves no watch, and may be of what was there before
	}
	c.tally.done(epoch)
}

// event is called by the session's hub, in the order of the events on the
// connection.
func (c *Cache) event(j job, generation uint64, ev zk.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation != c.generation || ev.Type == zk.EventNotWatching {
		return
	}
	sd := &j.n.sides[j.side]
	sd.armed = false
	if ev.Type == zk.EventNodeDeleted && !sd.reading && (j.n != c.top || j.side == listSide) {
		// Whether it is still gone is for the list of the parent to say, which has
		// changed as well. For the root it is the data side that looks.
		return
	}
	epoch := c.tally.epoch
	if sd.reading {
		// The event may have come before Notify was called, and whoever has waited
		// since then is waiting for what it stands for.
		epoch = sd.epoch
	}
	c.want(j.n, j.side, epoch)
}
