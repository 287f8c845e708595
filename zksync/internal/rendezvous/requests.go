package rendezvous

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// background is the ctx of transactions. Their outcome must be known, so only the end
// of the session ends them.
var background = context.Background()

var errDirectoryInUse = errors.New("the znode holds data or may not be read: a double barrier needs a directory of its own")

// prepare makes sure that the directory may be written to, and deletes the child of an
// earlier session, which would be counted beside a new child.
func (p *Participant) prepare(ctx context.Context) error {
	if err := p.requireWritable(ctx); err != nil {
		return err
	}
	if p.b.leftover.path == "" {
		return nil
	}
	// The child may still exist: the server may not have noticed the end of its session yet.
	p.child = p.b.leftover
	if err := p.remove(); err != nil && session.ClassOf(err) != session.ClassRemoved {
		return err
	}
	return nil
}

// requireWritable fails if the directory may not be written to. It creates a missing directory.
func (p *Participant) requireWritable(ctx context.Context) error {
	writable, err := p.b.dir.Writable(ctx, p.s)
	if err == nil && !writable {
		p.b.dir = znode.Directory{Path: p.b.path} // the next call reads it again
		err = errDirectoryInUse
	}
	return err
}

// join creates the child.
func (p *Participant) join() error {
	p.child = p.b.newChild()
	// Before the request: if the session is lost with the answer, the next session must look
	// for this child.
	p.b.leftover = p.child
	p.round, p.joined = 0, false
	for round := 0; ; round++ {
		stat, err := p.transact(&zk.CreateRequest{Path: p.path, Data: []byte(p.mark), Flags: zk.FlagEphemeral})
		class := session.ClassOf(err)
		switch class {
		case session.ClassOK:
			// The same transaction has created the child and written to the directory.
			p.czxid = stat.Mzxid
			p.joined, p.driftAtJoin = true, p.drift
			return nil
		case session.ClassConnectionLost, session.ClassUnknown:
			// An internal error of a server proves nothing, either.
			if ok, failed := p.findAfterLoss(); failed != nil {
				return failed
			} else if ok {
				// The lost answer had the count of the children.
				return p.readDirectory(background)
			}
			if class == session.ClassConnectionLost {
				err = nil
			}
		case session.ClassNoNode:
			// Another program may create the znode first, with data.
			if err = p.b.dir.Create(background, p.s); err == nil {
				err = p.requireWritable(background)
			}
		case session.ClassNodeExists:
			err = fmt.Errorf("%w: %s exists", ErrIDInUse, p.path)
		}
		if err == nil {
			err = p.pause(round)
		}
		if err != nil {
			// The child of a lost session stays noted for the next session.
			if p.s.Err() == nil {
				p.forgetChild() // the znode is not ours, or it does not exist
			}
			return err
		}
	}
}

// open creates ready if the directory has not changed and the child exists. It is not an
// error if the directory has changed, or if the outcome is unknown. open fails with
// ErrRemoved if another client has deleted the child.
func (p *Participant) open() (opened bool, err error) {
	// A directory that was deleted and created again counts its versions from 0. The child is
	// in the directory that was listed only.
	stat, err := p.transact(p.unchanged(), &zk.CheckVersionRequest{Path: p.path, Version: -1}, &zk.CreateRequest{Path: p.readyPath()})
	if session.ClassOf(err) == session.ClassNoNode {
		return false, session.ErrRemoved // the child, maybe with its directory
	}
	if err != nil {
		return false, unlessRaced(err, session.ClassNodeExists)
	}
	p.unwatch()
	// The same transaction has created ready, so this zxid is the czxid of ready.
	p.round = stat.Mzxid
	p.note(stat) // again: one of the children is ready now, and ready is no participant
	return true, nil
}

// remove deletes the child. It fails with ErrRemoved if another client has done so.
func (p *Participant) remove() error {
	err := p.persist(false, p.tryRemove)
	switch session.ClassOf(err) {
	case session.ClassOK, session.ClassRemoved:
		p.forgetChild()
	}
	return err
}

// persist calls try until the server has decided. lost says that the child may be gone, because
// an answer was lost.
func (p *Participant) persist(lost bool, try func(lost bool) error) error {
	for round := 0; ; round++ {
		err := try(lost)
		switch session.ClassOf(err) {
		case session.ClassConnectionLost, session.ClassUnknown:
			// The child may still exist, and the other participants would wait for its deletion.
			lost = true
		case session.ClassBadVersion:
		default:
			return err
		}
		if err := p.pause(round); err != nil {
			return err
		}
	}
}

// tryRemove is one attempt of remove; see persist.
func (p *Participant) tryRemove(lost bool) error {
	switch {
	case lost:
		if ok, err := p.findAfterLoss(); err != nil {
			return err
		} else if !ok {
			return p.readDirectory(background)
		}
	case p.b.id != "":
		// If an operator has deleted the child, the znode of that name may be the child of
		// another participant of the same id, which must stay. A name with a GUID needs no look.
		if err := p.requireChild(background); err != nil {
			return err
		}
	}
	// No request can compare the czxid: a child that an operator deletes after the look, and
	// that another participant of the same id replaces before the deletion, is not told apart.
	_, err := p.transact(&zk.DeleteRequest{Path: p.path, Version: -1})
	if session.ClassOf(err) == session.ClassNoNode {
		return session.ErrRemoved
	}
	return err
}

// removeOrDiscard is remove, and leaves the deletion to the janitor if remove fails.
func (p *Participant) removeOrDiscard() error {
	c := p.child
	err := p.remove()
	if err != nil && p.s.Err() == nil && session.ClassOf(err) != session.ClassRemoved {
		// The janitor sends no touch. The other participants count the child until they read
		// again, as after a crash.
		p.s.DiscardOwn(c.path, []byte(c.mark))
	}
	return err
}

// forgetChild notes that the participant has no child.
func (p *Participant) forgetChild() { p.child, p.b.leftover = child{}, child{} }

// retract deletes the child unless a round includes the participant, and reports
// whether one does.
func (p *Participant) retract() (in bool, err error) {
	lost := p.czxid == 0 // the outcome of join is unknown
	err = p.persist(lost, func(lost bool) (err error) {
		in, err = p.tryRetract(lost)
		return err
	})
	return in, err
}

// tryRetract is one attempt of retract; see persist.
func (p *Participant) tryRetract(lost bool) (in bool, err error) {
	if lost {
		if ok, err := p.findAfterLoss(); err != nil {
			return false, err
		} else if !ok {
			p.forgetChild()
			return false, nil
		}
	}
	// The directory is read first. If ready does not exist after that, it did not
	// exist when the directory had this version, and so it does not exist while the
	// directory has this version.
	if err := p.readDirectory(background); err != nil {
		return false, err
	}
	ok, stat, err := p.s.Exists(background, p.readyPath())
	if err != nil {
		return false, err
	}
	if ok && stat.Czxid > p.czxid {
		p.unwatch()
		p.round = stat.Czxid
		ok, err := p.find(background)
		if err == nil && !ok {
			p.forgetChild()
		}
		return ok, err
	}
	// Not transact: the error of the caller has the count with this participant.
	_, err = p.s.Multi(background, p.unchanged(), &zk.DeleteRequest{Path: p.path, Version: -1}, p.touch())
	switch session.ClassOf(err) {
	case session.ClassOK, session.ClassNoNode:
		p.forgetChild()
		return false, nil
	}
	return false, err
}

// findAfterLoss is find after a lost answer. An absence counts only behind a commit: a
// deposed leader does not show the transactions of its successor. Requests that still
// arrive over the old connection are refused.
func (p *Participant) findAfterLoss() (bool, error) {
	if err := p.s.SyncQuorum(background, p.b.path); err != nil {
		return false, err
	}
	return p.find(background)
}

// requireChild fails with ErrRemoved unless the child exists.
func (p *Participant) requireChild(ctx context.Context) error {
	ok, err := p.find(ctx)
	if err == nil && !ok {
		return session.ErrRemoved
	}
	return err
}

// find reports whether the child exists.
func (p *Participant) find(ctx context.Context) (bool, error) {
	var data []byte
	var stat *zk.Stat
	err := p.ask(ctx, func() (err error) {
		data, stat, err = p.s.Get(ctx, p.path)
		return err
	})
	switch {
	case session.ClassOf(err) == session.ClassNoNode:
		return false, nil
	case err != nil || string(data) != p.mark:
		return false, err // without an error it is the child of another participant with the same id
	}
	p.czxid = stat.Czxid
	return true, nil
}
