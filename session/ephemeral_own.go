package session

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// ownsUnreadable reports whether the znode at path is an ephemeral of s, for a znode whose ACL forbids
// us to read it.
func ownsUnreadable(ctx context.Context, s *Session, path string) (bool, error) {
	// ZooKeeper 3.8.4 and 3.9.2 made exists need the permission READ. So a server that refuses exists
	// knows getEphemerals, which came in 3.6: it lists the ephemerals of the session that asks whose
	// paths begin with a prefix, and needs no permission.
	r, record := s.m.records.path(wire.OpGetEphemerals, path, 0)
	full := r.Path
	r.Record = record
	c, _, err := s.requests.repeat(ctx, r)
	if err := s.m.failure(c, err); err != nil {
		return false, opError("getEphemerals", path, err)
	}
	d := wire.Decoder{B: c.Body}
	names := d.List()
	if d.Bad {
		return false, opError("getEphemerals", path, wire.ErrMalformed)
	}
	for name := range names {
		if name == full {
			return true, nil
		}
	}
	return false, nil
}

// removeOwn deletes the znode that made has created, and retries until the session ends. version is the version
// that s has given the znode: it counts if the znode may not be read.
func (e *Ephemeral) removeOwn(s *Session, path string, version int32, made *attempt) error {
	ctx := withFailures(s.hold, e.noteFailure) // Close has ended the context of the Ephemeral
	f := newFailures(ctx, s.m, "ephemeral", path, "the removal of the znode")
	defer func() { _ = f.end(ctx, nil) }()
	committed := false
	for round := 0; ; round++ {
		unreadable := false
		err := s.DeleteSeen(ctx, path, func(exists bool, stat *zk.Stat, err error) (int32, error) {
			ours := exists && made.owns(s, stat)
			switch unreadable = ClassOf(err) == ClassNoAuth; {
			case unreadable:
				ours, err = ownsUnreadable(ctx, s, path)
			case ours:
				version = stat.Version
			}
			if err == nil && !ours {
				err = ErrRemoved
			}
			return version, err
		})
		switch {
		case err == ErrRemoved && committed:
			return nil
		case err == ErrRemoved:
			// A deposed leader does not show a create that its successor has committed.
			if err = s.SyncQuorum(ctx, path); err == nil {
				committed = true
				continue
			}
		case unreadable && ClassOf(err) == ClassBadVersion:
			version = -1 // our znode was written meanwhile, and nothing shows its version
		}
		class := ClassOf(err)
		switch {
		case class == ClassOK || class == ClassNoNode || s.Err() != nil:
			return nil
		case class == ClassNoAuth:
			switch { // the permission may be given later
			case e.cfg.sequential:
				s.Discard(path) // the name is unique
			case made.until != anyZxid:
				// The creation zxid, as a read has shown it, or as the zxid of the answer to the create. A server whose
				// answer has a greater zxid leaves the znode until the session ends.
				s.DiscardCreated(path, made.until)
			}
			return err
		case class != ClassBadVersion && !class.pending():
			return err
		}
		f.note(err)
		if s.Pause(ctx, round) != nil {
			return nil
		}
	}
}
