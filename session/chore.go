package session

import (
	"bytes"
	"time"
)

// A chore is one or more znodes of a directory that the janitor is to remove.
type chore struct {
	dir   string
	paths []string // of the znodes; empty until they have been found by guid
	guid  string
	own   bool   // only an ephemeral of this session with certain data is removed
	data  []byte // see own; nil stands for any data
	done  chan struct{}

	attempts int // that have failed
	guilty   int // of connections that have ended; see maxGuilt and janitor.avoid
	due      time.Time

	// Of the present attempt:
	look    *call // see own
	deletes []*call
}

// A directoryLook is what the chores of a directory have in common in an attempt.
type directoryLook struct {
	quorum *call // see Session.quorumRequest
	list   *call
}

// attempt tries once to do chores, all at the same time over one connection, and
// settles them.
func (j *janitor) attempt(w *wire, chores []*chore) {
	looks := make(map[string]*directoryLook)
	for _, c := range chores {
		c.look, c.deletes = nil, nil
		c.ask(j.s, w, looks)
	}
	undecided := make([]error, len(chores))
	for i, c := range chores {
		if undecided[i] = c.decide(j.s, looks[c.dir]); undecided[i] == nil {
			c.remove(j.s, w)
		}
	}
	for i, c := range chores {
		err := undecided[i]
		if err == nil {
			err = c.await()
		}
		j.settle(c, err)
	}
}

// ask sends the reads that tell what there is to remove. They follow a commit on
// the same connection, because only then does an absence count: see lookForGUID.
func (c *chore) ask(s *Session, w *wire, looks map[string]*directoryLook) {
	if len(c.paths) > 0 && !c.own {
		return
	}
	l := looks[c.dir]
	if l == nil {
		l = &directoryLook{}
		looks[c.dir] = l
		r := s.quorumRequest(c.dir)
		l.quorum = &call{op: r.op, done: make(chan struct{})}
		w.send(l.quorum, r.fill)
	}
	if c.own {
		c.look = s.askPlain(w, opGetData, c.paths[0])
	} else if l.list == nil {
		l.list = s.askPlain(w, opGetChildren2, c.dir)
	}
}

// askPlain sends a read without a watch.
func (s *Session) askPlain(w *wire, op int32, path string) *call {
	c := &call{op: op, done: make(chan struct{})}
	full := s.m.full(path)
	w.send(c, func(b []byte) []byte { return appendBool(appendString(b, full), false) })
	return c
}

// decide finds out what there is to remove. An error says why that is not known;
// without an error and without paths there is nothing to remove.
func (c *chore) decide(s *Session, l *directoryLook) error {
	if len(c.paths) > 0 && !c.own {
		return nil
	}
	<-l.quorum.done
	if c.own {
		<-c.look.done
		switch err := c.look.failure(); {
		case err == nil && c.owns(s):
			return nil
		case err != nil && ClassOf(err) != ClassNoNode:
			c.guilty += guilt(err)
			return err
		}
		return c.absent(l)
	}
	<-l.list.done
	if err := l.list.failure(); err != nil && ClassOf(err) != ClassNoNode {
		// A caller's read ends with maxGuilt. A chore goes on: an orphan that is
		// given up blocks others for as long as the session lives.
		c.guilty += guilt(err)
		return err
	}
	d := decoder{b: l.list.body}
	if l.list.code == 0 {
		c.paths = findGUID(c.dir, d.list(), c.guid)
	}
	if len(c.paths) > 0 {
		return nil
	}
	return c.absent(l)
}

// absent notes that nothing was found, if that is certain.
func (c *chore) absent(l *directoryLook) error {
	if err := l.quorum.quorum(); err != nil {
		return err
	}
	c.paths = nil
	return nil
}

// owns reports whether the znode is what the chore was made for.
func (c *chore) owns(s *Session) bool {
	d := decoder{b: c.look.body}
	data, stat := d.buffer(), d.stat()
	return !d.bad && stat.EphemeralOwner == s.id && (c.data == nil || bytes.Equal(data, c.data))
}

// remove sends the deletes.
func (c *chore) remove(s *Session, w *wire) {
	for _, path := range c.paths {
		r := s.deleteRequest(path, -1)
		d := &call{op: r.op, done: make(chan struct{})}
		c.deletes = append(c.deletes, d)
		w.send(d, r.fill)
	}
}

// await returns the reason why a delete failed, and forgets the znodes that are
// gone. A znode that may go later counts for more than a znode that never will.
func (c *chore) await() (err error) {
	var left []string
	for i, d := range c.deletes {
		<-d.done
		failed := d.failure()
		switch class := ClassOf(failed); {
		case class.pending():
			left = append(left, c.paths[i])
			err = failed
		case class != ClassOK && class != ClassNoNode && err == nil:
			err = opError("delete", c.paths[i], failed)
		}
	}
	if len(left) > 0 {
		c.paths = left
	}
	return err
}
