package zksync

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// background is the ctx of what is written: its outcome must be known, so
// nothing but the end of the session cuts it short.
var background = context.Background()

// touch adds to the version of the directory, and brings its Stat.
func (p *participant) touch() *zk.SetDataRequest {
	return &zk.SetDataRequest{Path: p.b.path, Data: []byte{}, Version: -1}
}

func (p *participant) unchanged() *zk.CheckVersionRequest {
	return &zk.CheckVersionRequest{Path: p.b.path, Version: p.version}
}

func (p *participant) readyPath() string { return child(p.b.path, readyName) }

// told notes what the touch at the end of a transaction has told.
func (p *participant) told(results []zk.MultiResponse) *zk.Stat {
	stat := results[len(results)-1].Stat
	p.conn = p.s.Connection()
	p.note(stat)
	return stat
}

// prepare makes sure that the directory may be written to, and that nothing is
// left of us under an earlier session: it would be counted beside what comes now.
func (p *participant) prepare(ctx context.Context) error {
	touchable, err := p.b.dir.touchable(ctx, p.s)
	if err != nil {
		return err
	}
	if !touchable {
		p.b.dir.set(untried)
		return errDirectoryInUse
	}
	if p.b.leftover.path == "" {
		return nil
	}
	p.ticket = p.b.leftover
	if ok, err := p.find(ctx); err != nil {
		p.ticket = ticket{} // it is not known to be ours
		return err
	} else if !ok {
		p.gone()
		return nil
	}
	if err := p.remove(); err != nil && session.ClassOf(err) != session.ClassRemoved {
		return err
	}
	return nil
}

var errDirectoryInUse = errors.New("the znode holds data or may not be read: a double barrier needs a directory of its own")

// join creates our child.
func (p *participant) join() error {
	p.ticket = p.b.newTicket()
	p.b.leftover = p.ticket
	p.round = 0
	for round := 0; ; round++ {
		results, err := p.s.Multi(background,
			&zk.CreateRequest{Path: p.path, Data: []byte(p.mark), Flags: zk.FlagEphemeral}, p.touch())
		class := session.ClassOf(err)
		switch class {
		case session.ClassOK:
			p.czxid = p.told(results).Mzxid
			return nil
		case session.ClassConnectionLost:
			if ok, err := p.findAfterLoss(); err != nil {
				return err
			} else if ok {
				return p.lookAtDirectory(background)
			}
			err = nil
		case session.ClassNoNode:
			err = p.b.dir.make(background, p.s)
		case session.ClassNodeExists:
			err = fmt.Errorf("%w: there is %s", ErrIDInUse, p.path)
		}
		if err == nil {
			err = p.pause(round)
		}
		if err != nil {
			if p.s.Err() == nil && class != session.ClassUnknown {
				p.gone() // the znode is not ours, or it does not exist
			}
			return err
		}
	}
}

// remove removes our child, wherever that has got to.
func (p *participant) remove() error {
	for round := 0; ; round++ {
		results, err := p.s.Multi(background, &zk.DeleteRequest{Path: p.path, Version: -1}, p.touch())
		switch session.ClassOf(err) {
		case session.ClassOK:
			p.told(results)
			p.gone()
			return nil
		case session.ClassNoNode:
			p.gone()
			return ErrRemoved
		case session.ClassConnectionLost:
		default:
			return err
		}
		// The child may have made room for one of the same id meanwhile.
		if ok, err := p.findAfterLoss(); err != nil {
			return err
		} else if !ok {
			p.gone()
			return p.lookAtDirectory(background)
		}
		if err := p.pause(round); err != nil {
			return err
		}
	}
}

// gone notes that there is no child of ours.
func (p *participant) gone() { p.ticket, p.b.leftover = ticket{}, ticket{} }

// takeBack removes our child if we are not in a round by it, and says whether
// we are.
func (p *participant) takeBack() (in bool, err error) {
	lost := false
	for round := 0; ; round++ {
		if lost {
			if ok, err := p.findAfterLoss(); err != nil {
				return false, err
			} else if !ok {
				p.gone()
				return false, nil
			}
		}
		// In this order: if no ready is seen now, then there was none when the
		// directory had this version, and so there is none while it has it.
		if err := p.lookAtDirectory(background); err != nil {
			return false, err
		}
		ok, stat, err := p.s.Exists(background, p.readyPath())
		if err != nil {
			return false, err
		}
		if ok && stat.Czxid > p.czxid {
			p.unwatch()
			p.round = stat.Czxid
			return true, nil
		}
		_, err = p.s.Multi(background, p.unchanged(), &zk.DeleteRequest{Path: p.path, Version: -1}, p.touch())
		switch session.ClassOf(err) {
		case session.ClassOK, session.ClassNoNode:
			p.gone()
			return false, nil
		case session.ClassConnectionLost:
			lost = true
		case session.ClassBadVersion:
		default:
			return false, err
		}
		if err := p.pause(round); err != nil {
			return false, err
		}
	}
}

// openUp makes ready, if the directory is as it was last seen. That it is not,
// or that nobody knows, is no error.
func (p *participant) openUp() (opened bool, err error) {
	results, err := p.s.Multi(background, p.unchanged(), &zk.CreateRequest{Path: p.readyPath()}, p.touch())
	switch session.ClassOf(err) {
	case session.ClassOK:
		p.unwatch()
		p.round = p.told(results).Mzxid
		return true, nil
	case session.ClassBadVersion, session.ClassConnectionLost, session.ClassNodeExists:
		return false, nil
	}
	return false, err
}

// clear removes ready, if the directory is as it was last seen. That it is
// not, or that nobody knows, is no error.
func (p *participant) clear() (cleared bool, err error) {
	results, err := p.s.Multi(background, p.unchanged(), &zk.DeleteRequest{Path: p.readyPath(), Version: -1}, p.touch())
	switch session.ClassOf(err) {
	case session.ClassOK:
		p.told(results)
		return true, nil
	case session.ClassBadVersion, session.ClassConnectionLost, session.ClassNoNode:
		return false, nil
	}
	return false, err
}

// pause waits before a transaction is sent again: not the first time, but for
// longer and longer while others are always quicker, or the connection breaks.
func (p *participant) pause(round int) error {
	if round == 0 {
		return nil
	}
	limit := time.Millisecond << min(round, 9)
	t := time.NewTimer(limit/2 + rand.N(limit/2))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-p.s.Done():
		return p.s.Err()
	}
}
