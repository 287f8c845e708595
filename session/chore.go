package session

import (
	"bytes"
	"iter"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// A chore is one or more znodes of a directory that the janitor must remove.
type chore struct {
	dir   string
	paths []string // of the znodes; empty until the look-up by guid has found the znodes
	guid  string
	own   bool                // remove only an ephemeral of this session, and only with this data
	data  []byte              // the data that own requires; nil matches any data
	judge func(*zk.Stat) bool // what own requires of the znode besides; may be nil
	czxid int64               // of the znode that own has found; 0 before
	// refusal is the answer to a removal that was sent without a look.
	refusal error
	done    chan error // receives a refusal, and is closed when the outcome is known; has room for one element; nil afterwards

	attempts int // failed attempts
	guilty   int // number of connections that the chore's reads have ended; see maxGuilt and janitor.avoid
	due      time.Time

	// The following fields belong to the present attempt.
	look    *wire.Call // the read of the znode; only if own
	version int32      // of the znode that was read; only if own
	deletes []*wire.Call
}

// A directoryLook holds the requests that all chores of a directory share in an attempt.
type directoryLook struct {
	quorum *wire.Call // see records.quorum
	list   *wire.Call
}

// attempt tries each of the chores once and then settles it. All requests of the attempt
// are in flight over one connection at the same time.
func (j *janitor) attempt(w *wire.Conn, chores []*chore) {
	looks := make(map[string]*directoryLook)
	for _, c := range chores {
		c.look, c.deletes = nil, nil
		c.ask(&j.m.records, w, looks)
	}
	// The requests of all chores are sent before the first answer is awaited, so the whole
	// attempt takes two round trips.
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

// ask sends the reads that find the znodes to remove.
func (c *chore) ask(b *records, w *wire.Conn, looks map[string]*directoryLook) {
	if len(c.paths) > 0 && !c.own {
		return
	}
	l := looks[c.dir]
	if l == nil {
		l = &directoryLook{}
		looks[c.dir] = l
		// Ahead of the reads on the same connection, because an absence counts only behind a
		// commit: see lookForProtected.
		l.quorum = w.Send(own(b.quorum(c.dir)))
	}
	if c.own {
		op := wire.OpGetData
		if c.data == nil && (c.czxid != 0 || c.judge != nil) {
			op = wire.OpExists // servers before 3.8.4 refuse it to nobody
		}
		c.look = w.Send(own(b.read(op, c.paths[0], false)))
	} else if l.list == nil {
		l.list = w.Send(own(b.read(wire.OpGetChildren2, c.dir, false)))
	}
}

// own marks a request as a request of the Manager.
func own(r *wire.Request) *wire.Request {
	r.Own = true
	return r
}

// decide determines the paths to remove from the answers. It returns an error if the
// answers do not settle this. No error and no paths mean that there is nothing to remove.
func (c *chore) decide(session int64, l *directoryLook) error {
	if len(c.paths) > 0 && !c.own {
		return nil
	}
	// No ctx: the answers arrive, or the end of the connection does.
	<-l.quorum.Done()
	if c.own {
		<-c.look.Done()
		switch err := failureOf(c.look); {
		case err == nil:
			if ours, err := c.owns(session); ours || err != nil {
				return err
			}
			if !c.isKnown() && c.refusal != nil {
				return c.refusal // of a znode that is no ephemeral of the session
			}
		case ClassOf(err) != ClassNoNode:
			c.guilty += guilt(err)
			return err
		}
		return c.absent(l)
	}
	<-l.list.Done()
	if err := failureOf(l.list); err != nil && ClassOf(err) != ClassNoNode {
		// A caller's read ends at maxGuilt. A chore continues, because an orphan that
		// stays blocks other contenders for as long as the session lives.
		c.guilty += guilt(err)
		return err
	}
	d := wire.Decoder{B: l.list.Body}
	if l.list.Code == 0 {
		c.paths = findGUID(c.dir, d.List(), c.guid)
	}
	// A list that cannot be decoded proves no absence.
	if d.Bad {
		return wire.ErrMalformed
	}
	if len(c.paths) > 0 {
		return nil
	}
	return c.absent(l)
}

// absent records that there is no znode to remove. It returns an error if the answers do
// not prove the absence.
func (c *chore) absent(l *directoryLook) error {
	if err := quorumOf(l.quorum); err != nil {
		return err
	}
	// Otherwise remove would delete a znode that is not ours.
	c.paths = nil
	return nil
}

// owns reports whether the znode that was read is the znode of the chore.
func (c *chore) owns(session int64) (ours bool, err error) {
	d := wire.Decoder{B: c.look.Body}
	var data []byte
	if c.look.Op == wire.OpGetData {
		data = d.Buffer()
	}
	stat := d.Stat()
	if d.Bad {
		return false, wire.ErrMalformed
	}
	// Another znode of the same name may have been created since the first look.
	if stat.EphemeralOwner != session || c.data != nil && !bytes.Equal(data, c.data) || c.czxid != 0 && c.czxid != stat.Czxid ||
		c.judge != nil && c.czxid == 0 && !c.judge(stat) {
		return false, nil
	}
	c.version, c.czxid = stat.Version, stat.Czxid
	return true, nil
}

// isKnown reports whether the chore can tell its znode from every later znode of the same path.
func (c *chore) isKnown() bool {
	return c.guid != "" || c.czxid != 0 || c.judge != nil || guidOf(lastName(c.paths[0])) != ""
}

// report sends the outcome to done, and reports whether it is the first outcome.
func (c *chore) report(err error) bool {
	if c.done == nil {
		return false
	}
	if err != nil {
		c.done <- err
	}
	close(c.done)
	c.done = nil
	return true
}

// remove sends the delete requests.
func (c *chore) remove(b *records, w *wire.Conn) {
	// Of any version: the data of an orphan does not matter.
	version := int32(-1)
	if c.own {
		// Another client may have changed or replaced the znode since the look.
		version = c.version
	}
	for _, path := range c.paths {
		c.deletes = append(c.deletes, w.Send(own(b.versioned(wire.OpDelete, path, version))))
	}
}

// await waits for the delete requests and keeps only the paths that must be tried again.
// Its error is the reason of a failure that a retry may cure, or else of a final refusal.
func (c *chore) await() (err error) {
	var left []string
	for i, d := range c.deletes {
		<-d.Done()
		failed := failureOf(d)
		switch class := ClassOf(failed); {
		case c.pending(class):
			left = append(left, c.paths[i])
			err = failed
		case class == ClassNoAuth:
			left = append(left, c.paths[i])
			if !c.pending(ClassOf(err)) {
				err = opError("delete", c.paths[i], failed)
			}
		case class != ClassOK && class != ClassNoNode && err == nil:
			err = opError("delete", c.paths[i], failed)
		}
	}
	// If no path is left, the paths stay as they are, for the log line of a final refusal.
	if len(left) > 0 {
		c.paths = left
	}
	return err
}

// pending reports whether a failure of the class leads to another attempt.
func (c *chore) pending(class Class) bool {
	// A znode that has changed since the look must be looked at again.
	return class.pending() || c.own && class == ClassBadVersion
}

// findGUID returns the paths of the znodes in dir whose names carry the GUID.
func findGUID(dir string, names iter.Seq[string], guid string) (paths []string) {
	for name := range names {
		// guid has the prefix in front of the GUID and the dash behind it, so only a whole
		// GUID matches.
		if strings.HasPrefix(name, guid) {
			paths = append(paths, join(dir, name))
		}
	}
	return paths
}
