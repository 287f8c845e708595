package session

import (
	"context"
	"sync"

	"go.uber.org/zap"
)

// A janitor removes what callers who have gone left behind, in the order in
// which it was told, until the znode is gone or the session is. It has a
// goroutine only while there is something to do.
type janitor struct {
	s       *Session
	mu      sync.Mutex
	chores  []*chore
	running bool
	closed  bool
}

type chore struct {
	dir  string
	path string // what to remove; found by guid in dir where it is not known
	guid string
	done chan struct{}
	call *call
}

const maxChores = 128 // that are under way at once

// Discard removes a znode in the background, whatever its version, trying
// again over lost connections. The channel is closed when it is gone, or the
// session is, or the server refuses.
func (s *Session) Discard(path string) <-chan struct{} {
	dir, _ := split(path)
	c := &chore{dir: dir, path: path, done: make(chan struct{})}
	s.janitor.add(c)
	return c.done
}

func (j *janitor) add(c *chore) {
	if c.done == nil {
		c.done = make(chan struct{})
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		close(c.done)
		return
	}
	j.chores = append(j.chores, c)
	if !j.running {
		j.running = true
		j.s.wg.Go(j.run)
	}
}

// close makes the janitor take no more chores: the session is over.
func (j *janitor) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
}

// take returns the next chores, or none and ends the run.
func (j *janitor) take() []*chore {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := min(len(j.chores), maxChores)
	batch := j.chores[:n:n]
	if j.chores = j.chores[n:]; n == 0 {
		j.chores, j.running = nil, false
	}
	return batch
}

func (j *janitor) run() {
	for batch := j.take(); len(batch) > 0; batch = j.take() {
		for round := 0; len(batch) > 0; round++ {
			if j.s.pause(context.Background(), round) != nil {
				break
			}
			w, err := j.s.enter(context.Background(), true)
			if err != nil {
				break
			}
			batch = j.work(w, batch)
			j.s.leave()
		}
		for _, c := range batch { // the session is over, and its ephemerals with it
			close(c.done)
		}
	}
}

// work does what it can of a batch over one connection, all of it under way at
// once, and returns what is left.
func (j *janitor) work(w *wire, batch []*chore) (left []*chore) {
	listings := make(map[string]*call)
	for _, c := range batch {
		if c.path == "" && listings[c.dir] == nil {
			l := &call{op: opGetChildren2, done: make(chan struct{})}
			listings[c.dir] = l
			full := j.s.m.full(c.dir)
			w.send(l, func(b []byte) []byte { return appendBool(appendString(b, full), false) })
		}
	}
	for _, c := range batch {
		if c.path == "" {
			l := listings[c.dir]
			<-l.done
			if l.err != nil {
				continue
			}
			d := decoder{b: l.body}
			if name := findGUID(d.strings(), c.guid); l.code == 0 && name != "" {
				c.path = join(c.dir, name)
			} else {
				close(c.done)
				continue
			}
		}
		r := j.s.deleteRequest(c.path, -1)
		c.call = &call{op: r.op, done: make(chan struct{})}
		w.send(c.call, r.fill)
	}
	for _, c := range batch {
		switch {
		case c.call == nil && isClosed(c.done):
			continue
		case c.call == nil:
			left = append(left, c)
			continue
		}
		<-c.call.done
		if c.call.err != nil {
			c.call = nil
			left = append(left, c)
			continue
		}
		if c.call.code != 0 && c.call.code != codeNoNode {
			j.s.m.cfg.log.Error("could not remove a znode that nobody waits for any more",
				zap.String("path", c.path), zap.Error(codeError(c.call.code)))
		}
		close(c.done)
	}
	return left
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
