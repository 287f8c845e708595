package session

import (
	"bytes"
	"iter"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/session/internal/wire"
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
	look    *wire.Call // see own
	deletes []*wire.Call
}

// A directoryLook is what the chores of a directory have in common in an attempt.
type directoryLook struct {
	quorum *wire.Call // see records.quorum
	list   *wire.Call
}

// attempt tries once to do chores, all at the same time over one connection, and
// settles them.
func (j *janitor) attempt(w *wire.Conn, chores []*chore) {
	looks := make(map[string]*directoryLook)
	for _, c := range chores {
		c.look, c.deletes = nil, nil
		c.ask(&j.m.records, w, looks)
	}
	undecided := make([]error, len(chores))
	for i, c := range chores {
		if undecided[i] = c.decide(j.id.id, looks[c.dir]); undecided[i] == nil {
			c.remove(&j.m.records, w)
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
func (c *chore) ask(b *records, w *wire.Conn, looks map[string]*directoryLook) {
	if len(c.paths) > 0 && !c.own {
		return
	}
	l := looks[c.dir]
	if l == nil {
		l = &directoryLook{}
		looks[c.dir] = l
		l.quorum = w.Send(own(b.quorum(c.dir)))
	}
	if c.own {
		c.look = w.Send(own(b.read(wire.OpGetData, c.paths[0], false)))
	} else if l.list == nil {
		l.list = w.Send(own(b.read(wire.OpGetChildren2, c.dir, false)))
	}
}

// own marks a request as the Manager's.
func own(r *wire.Request) *wire.Request {
	r.Own = true
	return r
}

// decide finds out what there is to remove. An error says why that is not known;
// without an error and without paths there is nothing to remove.
func (c *chore) decide(session int64, l *directoryLook) error {
	if len(c.paths) > 0 && !c.own {
		return nil
	}
	<-l.quorum.Done()
	if c.own {
		<-c.look.Done()
		switch err := failureOf(c.look); {
		case err == nil && c.owns(session):
			return nil
		case err != nil && ClassOf(err) != ClassNoNode:
			c.guilty += guilt(err)
			return err
		}
		return c.absent(l)
	}
	<-l.list.Done()
	if err := failureOf(l.list); err != nil && ClassOf(err) != ClassNoNode {
		// A caller's read ends with maxGuilt. A chore goes on: an orphan that is
		// given up blocks others for as long as the session lives.
		c.guilty += guilt(err)
		return err
	}
	d := wire.Decoder{B: l.list.Body}
	if l.list.Code == 0 {
		c.paths = findGUID(c.dir, d.List(), c.guid)
	}
	if len(c.paths) > 0 {
		return nil
	}
	return c.absent(l)
}

// absent notes that nothing was found, if that is certain.
func (c *chore) absent(l *directoryLook) error {
	if err := quorumOf(l.quorum); err != nil {
		return err
	}
	c.paths = nil
	return nil
}

// owns reports whether the znode is what the chore was made for.
func (c *chore) owns(session int64) bool {
	d := wire.Decoder{B: c.look.Body}
	data, stat := d.Buffer(), d.Stat()
	return !d.Bad && stat.EphemeralOwner == session && (c.data == nil || bytes.Equal(data, c.data))
}

// remove sends the deletes.
func (c *chore) remove(b *records, w *wire.Conn) {
	for _, path := range c.paths {
		c.deletes = append(c.deletes, w.Send(own(b.versioned(wire.OpDelete, path, -1))))
	}
}

// await returns the reason why a delete failed, and forgets the znodes that are
// gone. A znode that may go later counts for more than a znode that never will.
func (c *chore) await() (err error) {
	var left []string
	for i, d := range c.deletes {
		<-d.Done()
		failed := failureOf(d)
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

// findGUID returns the paths of the znodes in dir whose names carry the GUID.
func findGUID(dir string, names iter.Seq[string], guid string) (paths []string) {
	for name := range names {
		if strings.HasPrefix(name, guid) {
			paths = append(paths, join(dir, name))
		}
	}
	return paths
}
