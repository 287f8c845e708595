package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

var errPrevious error = &sentinel{"the znode of the Manager's previous session still exists", ErrLost}

// run keeps the znode present over all sessions.
func (e *Ephemeral) run() {
	defer close(e.done) // after the path is given up, so that a goroutine that waits for done finds the path free
	defer close(e.status)
	// An Ephemeral that has waited for the path in vain does not have it.
	defer e.m.ephemerals.CompareAndDelete(e.asked, e)
	var end error
	// Two Ephemerals would both find the znode owned by their session, and both change it.
	for end == nil && !e.cfg.sequential {
		other, taken := e.m.ephemerals.LoadOrStore(e.asked, e)
		if !taken {
			break
		}
		end = e.awaitOther(other.(*Ephemeral))
	}
	if end == nil {
		end = e.m.Retry(e.ctx, e.keep)
	}
	if e.ctx.Err() != nil {
		end = ErrEphemeralClosed // and not the end of a ctx, which the caller does not know
	}
	e.tell(Absent, "", end)
}

// awaitOther waits until another Ephemeral of this Manager has given up the path, and returns the
// reason why it waits no longer.
func (e *Ephemeral) awaitOther(other *Ephemeral) error {
	obstacle, status := fmt.Errorf("%w: it is another Ephemeral of this Manager", ErrConflict), Conflict
	closing := other.ctx.Done()
	// An Ephemeral that was closed, or whose creation has failed, is about to give up the path, and
	// waits for a server at most.
	if other.ctx.Err() != nil {
		obstacle, status, closing = errClosing, Absent, nil
	}
	e.tell(status, "", opError("ephemeral", e.asked, obstacle))
	defer e.startWait(obstacle).Stop()
	select {
	case <-other.done:
		return nil
	case <-closing:
		return nil // the Conflict is over
	case <-e.ctx.Done():
		return Cancelled(e.ctx)
	case <-e.m.ctx.Done():
		return ErrClosed
	}
}

// keep keeps the znode present while a session lasts, and returns the reason why keep
// ended.
func (e *Ephemeral) keep(s *Session) error {
	f := newFailures(e.ctx, e.m.shared, "ephemeral", e.asked, "the creation of the znode")
	defer func() { _ = f.end(e.ctx, nil) }()
	e.removals, e.leftover = nil, nil // of another session, which has ended
	var made attempt
	for round := 0; ; round++ {
		n, err := e.create(s, f, round, &made)
		if n != nil {
			began := time.Now()
			var ours bool
			if ours, err = n.claim(f); ours {
				_ = f.end(e.ctx, nil)
				err = n.hold()
				n.w.Stop()
				if err == ErrRemoved {
					made = attempt{}
				}
			}
			// The znode was present or in conflict for a while, so its end does not belong to
			// the failures before it.
			if time.Since(began) > maxBackoff {
				round = 0
			}
		}
		pauses := round
		switch {
		case e.ctx.Err() != nil:
			switch {
			case !made.happened():
			case n != nil:
				e.leftover = e.removeOwn(s, n.path, n.version, &made)
			case !e.cfg.sequential: // createAs removes a sequential znode
				e.leftover = e.removeOwn(s, e.asked, 0, &made) // a create without an answer has made version 0
			}
			for _, gone := range e.removals {
				e.leftover = cmp.Or(e.leftover, <-gone)
			}
			return Cancelled(e.ctx)
		case s.Err() != nil:
			e.tell(Absent, "", s.Err())
			return s.Err()
		case err == nil: // the directory was created, or the other znode has gone
			pauses -= quickRounds
			if round > 0 && n != nil && n.refusal != nil { // the answers contradict each other
				f.note(n.refusal)
			}
		case err == ErrRemoved:
			pauses -= quickRounds
			e.tell(Absent, "", err)
		default:
			if n != nil && e.cfg.sequential {
				e.awaitLater(s.Discard(n.path)) // the next attempt creates a znode of another name
			}
			if isClosed(e.decided) { // otherwise Manager.Ephemeral returns the refusal
				f.note(err)
			}
			e.decide(err)
			e.tell(Absent, "", err)
		}
		// An error of the pause needs no handling: the next attempt finds the same
		// reason.
		_ = s.Pause(e.ctx, pauses)
	}
}

// awaitLater makes the end of the Ephemeral wait for a removal by the janitor.
func (e *Ephemeral) awaitLater(gone <-chan error) {
	e.removals = slices.DeleteFunc(e.removals, func(gone <-chan error) bool {
		select {
		case refused := <-gone:
			e.leftover = cmp.Or(e.leftover, refused)
			return true
		default:
			return false
		}
	})
	e.removals = append(e.removals, gone)
}

// quickRounds is the number of times that a znode is created again without a pause. Other
// clients may delete the znode, or be in its way, a few times.
const quickRounds = 8

// create makes one attempt to create the znode, and returns the znode that it has created
// or found. It returns neither a znode nor an error if the next attempt may succeed. f is
// for the failures. It sets made if the attempt may have created the znode.
func (e *Ephemeral) create(s *Session, f *failures, round int, made *attempt) (n *owned, err error) {
	data, generation, _ := e.data.present()
	// If the znode is found and ours, an earlier attempt has succeeded, perhaps with other data.
	n = &owned{e: e, s: s, path: e.asked, made: made, generation: generation}
	began, zxid := s.seenZxid.Load(), anyZxid
	if e.cfg.sequential {
		n.path, err = s.createAs(e.ctx, e.asked, data, zk.FlagEphemeralSequential, e.cfg.acl, e.awaitLater)
	} else {
		zxid, err = s.createAwaited(e.ctx, e.asked, data, e.cfg.acl)
	}
	n.refusal, n.dirty = err, err != nil
	class := ClassOf(err)
	switch class {
	case ClassOK:
		*made = attempt{after: began, until: zxid}
	case ClassConnectionLost, ClassUnknown:
		made.lose(began)
	}
	switch class {
	case ClassOK:
		e.data.settle(generation, data, nil)
		return n, nil
	case ClassNodeExists:
		// The znode is ours if an answer was lost: claim looks at its owner.
		if !e.cfg.sequential {
			return n, nil
		}
	case ClassNoNode, ClassConnectionLost:
		if round > 0 { // the directory is missing, or a connection breaks, now and then
			f.note(err)
		}
		if class == ClassConnectionLost {
			return nil, nil
		}
		dir, _ := split(e.asked)
		return nil, s.MakeDir(e.ctx, dir)
	}
	// The data will never be sent, or exceed a quota. So the data that was written last is wanted again. No other
	// refusal is about the data: the directory may be an ephemeral, for example.
	if class == ClassTooLarge || exceedsQuota(err) {
		e.data.settle(generation, data, err)
	}
	return nil, err
}

// claim determines whether this Ephemeral has created the znode under this very session, and then watches it. If
// not, claim returns when this may have changed, and ends f.
func (n *owned) claim(f *failures) (ours bool, err error) {
	e, s, made := n.e, n.s, n.made
	exists, stat, w, err := e.watchOwn(s, n.path)
	class := ClassOf(err)
	var obstacle error
	switch {
	case class == ClassNoAuth && n.refusal == nil:
		return true, nil // our own create has succeeded, so the owner need not be read
	case class == ClassNoAuth:
		// The znode is ours if the answer to our create was lost. It then has version 0, unless
		// another client has written to it.
		if made.happened() {
			if ours, err := ownsUnreadable(e.ctx, s, n.path); ours || err != nil {
				return ours, err
			}
		}
		// Such a read leaves no watch, so only another look after a while can find the
		// znode gone.
		e.tell(Conflict, "", opError("ephemeral", n.path, fmt.Errorf("%w, and its owner cannot be read: %w", ErrConflict, err)))
		return false, s.Pause(e.ctx, unwatchable)
	case err != nil:
		return false, err
	case !exists:
		// The obstacle has gone since our create was refused, so create tries again. The
		// watch for the next creation would find our own znode.
		w.Stop()
		return false, nil
	case made.owns(s, stat):
		n.w, n.version = w, stat.Version
		return true, nil
	case stat.EphemeralOwner == s.id:
		obstacle = fmt.Errorf("%w: an ephemeral of this very session, which another part of the program has created", ErrConflict)
		e.tell(Conflict, "", opError("ephemeral", n.path, obstacle))
	case e.m.had(stat.EphemeralOwner):
		// The znode goes when that session has ended on the server. A delete by name
		// could hit a newer znode of the same name.
		obstacle = fmt.Errorf("%w (session %s)", errPrevious, sessionID(stat.EphemeralOwner))
		e.tell(Absent, "", opError("ephemeral", n.path, obstacle))
	default:
		obstacle = fmt.Errorf("%w: %s", ErrConflict, ownerOf(stat))
		e.tell(Conflict, "", opError("ephemeral", n.path, obstacle))
	}
	// The read that found the obstacle has armed the watch, so no end of the obstacle
	// is missed.
	defer w.Stop()
	// A server before 3.9 tells every client that a znode exists, but sends no event to a client without the permission
	// to read the znode. Neither the data nor the list of children should exceed the largest answer.
	if stat.DataLength < stat.NumChildren*childBytes {
		_, _, err = s.Get(e.ctx, n.path)
	} else {
		_, _, err = s.Children(e.ctx, n.path)
	}
	if ClassOf(err) == ClassNoAuth {
		return false, s.Pause(e.ctx, unwatchable)
	}
	_ = f.end(e.ctx, nil)
	defer e.startWait(obstacle).Stop()
	select {
	case ev := <-w.Events():
		return false, ev.Err
	case <-e.ctx.Done():
		return false, Cancelled(e.ctx)
	}
}

// startWait begins the wait for the removal of an obstacle. The log reports this wait, because the
// znode is missing and perhaps no call waits that could report it.
func (e *Ephemeral) startWait(obstacle error) *Wait {
	return e.m.StartWait("ephemeral", e.asked, func(context.Context) error {
		return fmt.Errorf("for the removal of another znode at the path: %w", obstacle)
	})
}

// childBytes is roughly what a child adds to the answer to a list.
const childBytes = 32

// unwatchable is the round for which Pause waits about a second.
const unwatchable = 16

// ownerOf describes the owner of a znode that is in the way. In containers and in znodes
// with a time to live, the owner field is a mark and not a session.
func ownerOf(stat *zk.Stat) string {
	owner := uint64(stat.EphemeralOwner)
	if owner == 0 || owner == 1<<63 || owner>>56 == 0xff {
		return "a persistent one, which stays until it is deleted"
	}
	return fmt.Sprintf("an ephemeral of session %#x", owner)
}
