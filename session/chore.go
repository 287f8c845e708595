package session

import (
	"bytes"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// A chore is one or more znodes of a directory that the janitor must remove.
type chore struct {
	dir   string
	paths []string // of the znodes; empty until janitor.search has found the znodes
	guid  string
	own   bool   // remove only an ephemeral of this session, and only with this data
	data  []byte // the data that own requires; nil matches any data
	done  chan struct{}

	attempts int // failed attempts
	guilty   int // see maxGuilt
}

// end tells that the chore is done.
func (c *chore) end() {
	if c.done != nil {
		close(c.done)
	}
}

// own marks a request as a request of the Manager.
func own(r *wire.Request) *wire.Request {
	r.Own = true
	return r
}

// lookInto returns the paths of the protected znodes in a directory by their GUIDs. unproven
// is the reason why a znode may exist that is not found, nil if there is none.
func lookInto(b *records, w *wire.Conn, dir string) (found map[string][]string, unproven, err error) {
	// Ahead of the read on the same connection, because an absence counts only behind a
	// commit: see lookForProtected.
	quorum := w.Send(own(b.quorum(dir)))
	list := w.Send(own(b.read(wire.OpGetChildren2, dir, false)))
	// No ctx: the answers arrive, or the end of the connection does.
	<-quorum.Done()
	<-list.Done()
	if err := failureOf(list); err != nil && ClassOf(err) != ClassNoNode {
		return nil, nil, err
	}
	found = make(map[string][]string)
	d := wire.Decoder{B: list.Body}
	if list.Code == 0 {
		for name := range d.List() {
			found[guidOf(name)] = append(found[guidOf(name)], join(dir, name))
		}
	}
	// A list that cannot be decoded proves no absence.
	if d.Bad {
		return nil, nil, wire.ErrMalformed
	}
	return found, quorumOf(quorum), nil
}

// owns reports whether the znode is the znode of the chore, and returns its version. If
// it is not, an error says that the answers do not settle this.
func (c *chore) owns(b *records, w *wire.Conn, session int64) (ours bool, version int32, err error) {
	// In this order, because of an absence: see lookInto.
	quorum := w.Send(own(b.quorum(c.dir)))
	look := w.Send(own(b.read(wire.OpGetData, c.paths[0], false)))
	<-quorum.Done()
	<-look.Done()
	switch err := failureOf(look); {
	case err == nil:
		d := wire.Decoder{B: look.Body}
		data, stat := d.Buffer(), d.Stat()
		if d.Bad {
			return false, 0, wire.ErrMalformed
		}
		if stat.EphemeralOwner == session && (c.data == nil || bytes.Equal(data, c.data)) {
			return true, stat.Version, nil
		}
	case ClassOf(err) != ClassNoNode:
		return false, 0, err
	}
	return false, 0, quorumOf(quorum)
}

// remove deletes the znodes and keeps only the paths that must be tried again. Its error
// is the reason of a failure that a retry may cure, or else of a final refusal.
func (c *chore) remove(b *records, w *wire.Conn, session int64) error {
	// Of any version: the data of an orphan does not matter.
	version := int32(-1)
	if c.own {
		ours, current, err := c.owns(b, w, session)
		if !ours {
			return err
		}
		// Another client may have changed or replaced the znode since the look.
		version = current
	}
	deletes := make([]*wire.Call, len(c.paths))
	for i, path := range c.paths {
		deletes[i] = w.Send(own(b.versioned(wire.OpDelete, path, version)))
	}
	var left []string
	var err error
	for i, d := range deletes {
		<-d.Done()
		failed := failureOf(d)
		switch class := ClassOf(failed); {
		case c.pending(class):
			left = append(left, c.paths[i])
			err = failed
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
