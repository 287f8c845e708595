package session

import "github.com/go-zookeeper/zk"

// An owned is the znode of an Ephemeral in a session.
type owned struct {
	e          *Ephemeral
	s          *Session
	path       string
	made       *attempt
	version    int32
	refusal    error  // of our create, if it has found the znode
	generation uint64 // of the data in the znode
	dirty      bool   // the data in the znode is unknown
	w          *Watch // nil if the ACL forbids us to read the znode

	f *failures // for the writes since the last successful write
}

// hold watches our znode and writes the data of Set until the znode is gone or the
// session has ended.
func (n *owned) hold() error {
	e, s := n.e, n.s
	e.tell(Present, n.path, nil)
	n.f = newFailures(e.ctx, e.m.shared, "ephemeral", e.asked, "a write of the data")
	defer func() { _ = n.f.end(e.ctx, nil) }()
	for {
		data, generation, change := e.data.present()
		if n.dirty || generation != n.generation {
			if err := n.write(data, generation); err != nil {
				return err
			}
			continue
		}
		select {
		case ev := <-n.w.Events():
			switch ev.Type {
			case zk.EventNotWatching:
				return ev.Err
			case zk.EventNodeDeleted:
				return ErrRemoved
			}
			n.w = nil // it has fired
			if err := n.look(); err != nil {
				return err
			}
		case <-change:
		case <-s.hold.Done():
			return s.Err()
		case <-e.ctx.Done():
			return Cancelled(e.ctx)
		}
	}
}

// watchOwn is WatchExists, repeated after internal errors of a server: such an answer says nothing of
// the znode, which goes on existing.
func (e *Ephemeral) watchOwn(s *Session, path string) (exists bool, stat *zk.Stat, w *Watch, err error) {
	f := newFailures(e.ctx, e.m.shared, "ephemeral", e.asked, "a read of the znode")
	defer func() { err = f.end(e.ctx, err) }()
	for round := 1; ; round++ {
		exists, stat, w, err = s.WatchExists(e.ctx, path)
		if ClassOf(err) != ClassUnknown {
			return exists, stat, w, err
		}
		f.note(err)
		if e.Path() == "" {
			e.tell(Absent, "", err) // the reason for the callers that wait
		}
		if err := s.Pause(e.ctx, round); err != nil {
			return false, nil, nil, err
		}
	}
}

// look watches our znode again after a change of its data.
func (n *owned) look() error {
	exists, stat, w, err := n.e.watchOwn(n.s, n.path)
	if ClassOf(err) == ClassNoAuth {
		ours, err := ownsUnreadable(n.e.ctx, n.s, n.path)
		if err == nil && !ours {
			err = ErrRemoved
		}
		// Without permission to read there is neither a watch nor a version. Any version must
		// do, and write checks the owner in the answer.
		n.version = -1
		return err
	}
	if err != nil {
		return err
	}
	// If write has called look, the old watch may still be armed.
	n.w.Stop()
	// keep stops this watch, also if the znode turns out to be gone.
	n.w = w
	if !exists || !n.made.owns(n.s, stat) {
		return ErrRemoved
	}
	n.version = stat.Version
	return nil
}

// write writes data to the znode.
func (n *owned) write(data []byte, generation uint64) error {
	e, s := n.e, n.s
	// Another client may have created a znode of the same name meanwhile. The version
	// protects it, unless both znodes have been written equally often. Then only the Stat
	// in the answer shows that the znode was not ours.
	var stat *zk.Stat
	err := e.checkCreate(data)
	if err == nil {
		stat, err = s.Set(e.ctx, n.path, data, n.version)
	}
	switch ClassOf(err) {
	case ClassOK:
		if !n.made.owns(s, stat) {
			return ErrRemoved
		}
		n.version, n.generation, n.dirty = stat.Version, generation, false
		_ = n.f.end(e.ctx, nil)
		e.data.settle(generation, data, nil)
		return nil
	case ClassCancelled, ClassClosed, ClassLost:
		return err
	case ClassBadVersion, ClassConnectionLost, ClassUnknown:
		// Another client has written to the znode, or a lost answer or an internal error of the server
		// hides the outcome of our own write.
		n.dirty = true
		n.f.note(err)
		if err := s.Pause(e.ctx, n.f.times-1); err != nil {
			return err
		}
		return n.look()
	case ClassNoNode:
		return ErrRemoved
	default:
		// The generation counts as handled: the same data would be refused again. If the outcome of
		// an earlier write is unknown, the data that are wanted again must be written.
		n.generation, n.dirty = generation, n.dirty && generation != n.generation
		_ = n.f.end(e.ctx, nil)
		e.data.settle(generation, data, err)
		return nil
	}
}
