package session

import (
	"bytes"
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
	dir   string
	paths []string // what to remove; found by guid in dir where they are not known
	guid  string
	own   bool   // only what is an ephemeral of the session and holds data is removed
	data  []byte // see own
	done  chan struct{}
	look  *call // see own
	calls []*call
}

const maxChores = 128 // that are under way at once

// Discard removes a znode in the background, whatever its version, trying
// again over lost connections. The channel is closed when it is gone, or the
// session is, or the server refuses.
func (s *Session) Discard(path string) <-chan struct{} {
	dir, _ := split(path)
	c := &chore{dir: dir, paths: []string{path}, done: make(chan struct{})}
	s.janitor.add(c)
	return c.done
}

// DiscardOwn is Discard for an ephemeral of this session that holds certain data:
// if the znode of that name is another one by now it is let be.
func (s *Session) DiscardOwn(path string, data []byte) <-chan struct{} {
	dir, _ := split(path)
	c := &chore{dir: dir, paths: []string{path}, own: true, data: bytes.Clone(data), done: make(chan struct{})}
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
			if j.s.Pause(context.Background(), round) != nil {
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
		if len(c.paths) == 0 && listings[c.dir] == nil {
			l := &call{op: opGetChildren2, done: make(chan struct{})}
			listings[c.dir] = l
			full := j.s.m.full(c.dir)
			w.send(l, func(b []byte) []byte { return appendBool(appendString(b, full), false) })
		}
		if c.own {
			c.look = &call{op: opGetData, done: make(chan struct{})}
			full := j.s.m.full(c.paths[0])
			w.send(c.look, func(b []byte) []byte { return appendBool(appendString(b, full), false) })
		}
	}
	for _, c := range batch {
		c.calls = nil
		if len(c.paths) == 0 {
			l := listings[c.dir]
			<-l.done
			if l.err != nil {
				continue
			}
			d := decoder{b: l.body}
			if l.code == 0 {
				c.paths = findGUID(c.dir, d.strings(), c.guid)
			}
			if len(c.paths) == 0 {
				close(c.done)
				continue
			}
		}
		if c.own {
			<-c.look.done
			if c.look.err != nil {
				continue
			}
			if !j.owns(c) {
				close(c.done)
				continue
			}
		}
		for _, path := range c.paths {
			r := j.s.deleteRequest(path, -1)
			d := &call{op: r.op, done: make(chan struct{})}
			c.calls = append(c.calls, d)
			w.send(d, r.fill)
		}
	}
	for _, c := range batch {
		if len(c.calls) == 0 {
			if !isClosed(c.done) {
				left = append(left, c)
			}
			continue
		}
		var failed []string
		for i, d := range c.calls {
			<-d.done
			if d.err != nil {
				failed = append(failed, c.paths[i])
			} else if d.code != 0 && d.code != codeNoNode {
				j.s.m.cfg.log.Error("could not remove a znode that nobody waits for any more",
					zap.String("path", c.paths[i]), zap.Error(errorOfCode(d.code)))
			}
		}
		if c.paths = failed; len(failed) > 0 {
			left = append(left, c)
			continue
		}
		close(c.done)
	}
	return left
}

// owns says whether what c looked at is what it is to remove.
func (j *janitor) owns(c *chore) bool {
	if c.look.code != 0 {
		return false
	}
	d := decoder{b: c.look.body}
	data, stat := d.buffer(), d.stat()
	return !d.bad && stat.EphemeralOwner == j.s.id && bytes.Equal(data, c.data)
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
