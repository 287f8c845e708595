package session

import "github.com/go-zookeeper/zk"

// An owned is the znode of an Ephemeral in a session.
type owned struct {
	path       string
	version    int32
	generation uint64 // of its data
	dirty      bool   // its data may be any
	failures   int    // to write it, since it was last written
	w          *Watch // nil where we may not read it
}

// events is what to wait for; nothing where there is no watch.
func (n *owned) events() <-chan zk.Event {
	if n.w == nil {
		return nil
	}
	return n.w.Events()
}

// hold keeps an eye on a znode of ours, and writes what Set wants, until it is
// gone or the session is.
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

// look watches a znode of ours again, after a change of its data.
func (e *Ephemeral) look(s *Session, n *owned) error {
	exists, stat, w, err := s.WatchExists(e.ctx, n.path)
	if ClassOf(err) == ClassNoAuth {
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

// write gives the znode its data. The version keeps it from hitting a znode
// that somebody else has put in the place of ours.
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

// remove deletes the znode at Close, while the session lasts. n is nil if it is
// not known to be there; a sequential one is then removed by those who look after
// protected creations.
func (e *Ephemeral) remove(s *Session, n *owned) error {
	path := e.asked
	if n != nil {
		path = n.path
	} else if e.cfg.sequential {
		return nil
	}
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
