package session

import "github.com/go-zookeeper/zk"

// An owned is the znode of an Ephemeral in a session.
type owned struct {
	path       string
	version    int32
	generation uint64 // of the data in the znode
	dirty      bool   // the data in the znode is unknown
	failures   int    // failed writes since the last successful write
	w          *Watch // nil if the ACL forbids us to read the znode
}

// events returns the events of the watch, or nil if there is no watch.
func (n *owned) events() <-chan zk.Event {
	if n.w == nil {
		return nil
	}
	return n.w.Events()
}

// hold watches our znode and writes the data of Set until the znode is gone or the
// session has ended.
func (e *Ephemeral) hold(s *Session, n *owned) error {
	e.tell(Present, n.path, nil)
	for {
		if data, generation := e.data.present(); n.dirty || generation != n.generation {
			if err := e.write(s, n, data, generation); err != nil {
				return err
			}
			continue
		}
		select {
		case ev := <-n.events():
			switch ev.Type {
			case zk.EventNotWatching:
				return ev.Err
			case zk.EventNodeDeleted:
				return errRemoved
			}
			n.w = nil // it has fired
			if err := e.look(s, n); err != nil {
				return err
			}
		case <-e.kick:
		case <-s.hold.Done():
			return s.Err()
		case <-e.ctx.Done():
			return Cancelled(e.ctx)
		}
	}
}

// look watches our znode again after a change of its data.
func (e *Ephemeral) look(s *Session, n *owned) error {
	exists, stat, w, err := s.WatchExists(e.ctx, n.path)
	if ClassOf(err) == ClassNoAuth {
		// Without permission to read there is no watch either. Any version must do, and
		// write checks the owner in the answer.
		n.version = -1
		return nil
	}
	if err != nil {
		return err
	}
	n.w.Stop()
	n.w = w
	if !exists || stat.EphemeralOwner != s.id {
		return errRemoved
	}
	n.version = stat.Version
	return nil
}

// write writes data to the znode. The version prevents a write to a znode that another
// client has created under the same name.
func (e *Ephemeral) write(s *Session, n *owned, data []byte, generation uint64) error {
	stat, err := s.Set(e.ctx, n.path, data, n.version)
	switch ClassOf(err) {
	case ClassOK:
		if stat.EphemeralOwner != s.id {
			return errRemoved
		}
		n.version, n.generation, n.dirty, n.failures = stat.Version, generation, false, 0
		e.data.reached(generation, data)
		return nil
	case ClassCancelled, ClassClosed, ClassLost:
		return err
	case ClassBadVersion, ClassConnectionLost:
		// Another client has written to the znode, or a lost answer hides the outcome
		// of our own write.
		n.dirty = true
		if err := s.Pause(e.ctx, n.failures); err != nil {
			return err
		}
		n.failures++
		return e.look(s, n)
	case ClassNoNode:
		return errRemoved
	default:
		n.generation, n.dirty = generation, false
		e.data.refuse(generation, err)
		return nil
	}
}

// remove deletes the znode at Close, until the session ends. n is nil if the znode was
// never found. The clean-up of CreateProtected then removes a sequential znode.
func (e *Ephemeral) remove(s *Session, n *owned) error {
	path := e.asked
	if n != nil {
		path = n.path
	} else if e.cfg.sequential {
		return nil
	}
	// Not e.ctx, which Close has ended.
	ctx := s.hold
	for round := 0; ; round++ {
		exists, stat, err := s.Exists(ctx, path)
		if err == nil {
			if !exists || stat.EphemeralOwner != s.id {
				return nil
			}
			err = s.Delete(ctx, path, stat.Version)
		}
		class := ClassOf(err)
		switch {
		case class == ClassOK || class == ClassNoNode || s.Err() != nil:
			return nil
		case class != ClassBadVersion && !class.pending():
			return err
		}
		if s.Pause(ctx, round) != nil {
			return nil
		}
	}
}
