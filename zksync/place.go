package zksync

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A place is a znode of ours in a line. One goroutine at a time uses it: the
// goroutine that waits in it or holds by it.
type place struct {
	line  *line
	s     *session.Session
	lease *session.Lease

	remover remover

	path  string
	name  string
	seq   int32
	token int64 // its czxid, 0 until known
	alone bool  // the directory had no other child when it was created

	// While it waits:
	own  *session.Watch // on its own znode
	near *neighbour     // the nearest place that blocks it
	far  *neighbour     // the one before that
	last bool           // near is the only one left

	ahead *ahead // nil until it waits

	guard *guard // while it holds
	crowd *crowd // while it lingers, and from then on

	unsure bool // a transaction that removes it may have happened
}

// A neighbour is a place in front of ours that is being watched.
type neighbour struct {
	name  string
	watch *session.Watch
}

func (n *neighbour) events() <-chan zk.Event {
	if n == nil {
		return nil
	}
	return n.watch.Events()
}

func (n *neighbour) stop() {
	if n != nil {
		n.watch.Stop()
	}
}

// wait returns when the place is first in line and proven to be so, with the lease
// held. If ctx ends, the place stays in line, and wait may be called again; after any
// other error call leave.
func (p *place) wait(ctx context.Context) error {
	return p.confirm(ctx, p.await(ctx))
}

// confirm finds the reason of a removal. The end of our session removes our znode as
// well, and the server may report the removal first: another client removed the znode
// only if the leader still knows the session.
func (p *place) confirm(ctx context.Context, err error) error {
	if session.ClassOf(err) == session.ClassRemoved {
		if err := p.s.SyncQuorum(ctx, p.line.dir.Path); err != nil {
			return err
		}
	}
	return err
}

func (p *place) await(ctx context.Context) error {
	if p.alone {
		p.alone = false
		return p.grant(ctx)
	}
	var wait *session.Wait
	defer func() { wait.Stop() }()
	for {
		if p.near == nil {
			first, err := p.look(ctx)
			if err != nil {
				return err
			}
			if first {
				return p.grant(ctx)
			}
			continue
		}
		if wait == nil {
			p.line.newest.Store(p.ahead)
			wait = p.line.m.StartWait(p.line.op, p.line.dir.Path, p.ahead.reason)
		}
		select {
		case ev := <-p.own.Events():
			p.own = nil
			p.forgetNeighbours()
			if err := ownEvent(ev); err != nil {
				return err
			}
		case ev := <-p.near.events():
			granted := ev.Type == zk.EventNodeDeleted && p.last && p.unbroken()
			if ev.Type == zk.EventNotWatching {
				return znode.LossOf(ev.Err)
			}
			p.near = nil
			if granted && !p.line.rule.overtaken(p.line.class) {
				return p.grant(ctx)
			}
		case ev := <-p.far.events():
			if ev.Type == zk.EventNotWatching {
				return znode.LossOf(ev.Err)
			}
			// The nearest one still has its turn: time to see whether it is the
			// last before ours.
			p.far = nil
			first, err := p.look(ctx)
			if err != nil {
				return err
			}
			if first {
				return p.grant(ctx)
			}
		case <-p.s.Done():
			return p.s.Err() // watches get their events later if functions are still awaited
		case <-ctx.Done():
			return wait.Cancelled(ctx)
		}
	}
}

// first says whether the place is first in line, and takes it if it is.
func (p *place) first(ctx context.Context) (bool, error) {
	first := p.alone
	if !first {
		f, err := p.survey(ctx)
		if err != nil {
			return false, p.confirm(ctx, err)
		}
		if first = f.near == ""; !first {
			return false, nil // only a place that waits needs watches
		}
	}
	p.alone = false
	return true, p.grant(ctx)
}

// ownEvent says what an event on our own znode means for us.
func ownEvent(ev zk.Event) error {
	switch ev.Type {
	case zk.EventNodeDeleted:
		return ErrRemoved
	case zk.EventNotWatching:
		return znode.LossOf(ev.Err)
	}
	return nil
}

// unbroken reports whether all our knowledge of the line comes from one connection:
// only then would an earlier event have told us of a change of our own znode.
func (p *place) unbroken() bool {
	if p.own == nil || p.near.watch.FiredOn() != p.near.watch.Connection() || p.own.Connection() != p.near.watch.Connection() {
		return false
	}
	return len(p.own.Events()) == 0
}

// look lists the line, and watches our own znode and the two nearest places that
// block us, or only the nearest where many places may wait for the same ones. It
// reports whether no place blocks us. p.near is nil afterwards if the nearest place
// has left already.
func (p *place) look(ctx context.Context) (first bool, err error) {
	f, err := p.survey(ctx)
	if err != nil {
		return false, err
	}
	p.last = f.last
	if f.last {
		p.lease.Prepare() // next in line: the grant will need no request
	}
	if f.near == "" {
		p.forgetNeighbours()
		return true, nil
	}
	if p.line.rule.together(p.line.class) {
		f.far = ""
	}
	return false, p.watchNeighbours(ctx, f.near, f.far)
}

// survey lists the line, and watches our own znode, which is asked for together
// with the list.
func (p *place) survey(ctx context.Context) (front, error) {
	var own error
	var wg sync.WaitGroup
	if p.own == nil {
		wg.Go(func() { own = p.watchOwn(ctx) })
	}
	names, _, err := p.s.ChildNames(ctx, p.line.dir.Path)
	wg.Wait()
	switch {
	case own != nil:
		return front{}, own
	case session.ClassOf(err) == session.ClassNoNode:
		return front{}, ErrRemoved
	case err != nil:
		return front{}, err
	}
	f := p.front(names)
	if !f.listed {
		return front{}, ErrRemoved
	}
	if p.ahead == nil {
		p.ahead = &ahead{p: p}
	}
	p.ahead.listed(f)
	return f, nil
}

// watchOwn arms the watch on our own znode. getData is used because, unlike
// exists, it leaves no watch behind when the znode is gone.
func (p *place) watchOwn(ctx context.Context) error {
	_, stat, w, err := p.s.WatchData(ctx, p.path)
	switch {
	case session.ClassOf(err) == session.ClassNoNode:
		return ErrRemoved
	case err != nil:
		return err
	case stat.EphemeralOwner != p.s.ID():
		w.Stop()
		return ErrRemoved
	}
	p.own, p.token = w, stat.Czxid
	return nil
}

// watchNeighbours watches two places, taking over the watches that are there.
// far may be empty.
func (p *place) watchNeighbours(ctx context.Context, near, far string) error {
	old := []*neighbour{p.near, p.far}
	p.near, p.far = nil, nil
	var wg sync.WaitGroup
	var nearErr, farErr error
	arm := func(name string, to **neighbour, failed *error) {
		for i, n := range old {
			if n != nil && n.name == name {
				*to, old[i] = n, nil
				return
			}
		}
		wg.Go(func() {
			data, stat, w, err := p.s.WatchData(ctx, znode.Join(p.line.dir.Path, name))
			if err == nil {
				p.ahead.read(name, data, stat)
				*to = &neighbour{name, w}
			} else if session.ClassOf(err) != session.ClassNoNode {
				*failed = err
			}
		})
	}
	arm(near, &p.near, &nearErr)
	if far != "" {
		arm(far, &p.far, &farErr)
	}
	wg.Wait()
	for _, n := range old {
		n.stop()
	}
	if err := errors.Join(nearErr, farErr); err != nil {
		return err
	}
	if far != "" && p.far == nil {
		// It went between the list and the watch; only another list can tell
		// what is left.
		p.near.stop()
		p.near = nil
	}
	return nil
}

func (p *place) forgetNeighbours() {
	p.near.stop()
	p.far.stop()
	p.near, p.far = nil, nil
}

// grant checks the place against the lease before it is handed out.
func (p *place) grant(ctx context.Context) error {
	if err := znode.Grant(ctx, p.lease); err != nil {
		return err
	}
	p.guard = newGuard(p)
	p.own = nil // the guard's now
	return nil
}

// lost says why a place that was granted is none any more, nil if it is.
func (p *place) lost() error {
	if err := znode.SessionLost(p.s); err != nil {
		return err
	}
	return p.guard.lost()
}

// leave gives the place up without waiting: its znode is removed in the
// background, until it is gone or the session is.
func (p *place) leave() {
	p.close()
	p.remover.discard(p.s, p.path)
}

// withdraw is leave that waits until the znode is gone, for as long as ctx.
func (p *place) withdraw(ctx context.Context) {
	select {
	case <-p.remover.discard(p.s, p.path):
	case <-ctx.Done():
	}
	p.close()
}

// close ends everything that belongs to a place except its znode.
func (p *place) close() {
	p.crowd.stop()
	p.guard.stop()
	if p.own != nil {
		p.own.Stop()
		p.own = nil
	}
	p.forgetNeighbours()
	p.lease.End()
}

// release removes the znode of a place that was held and waits for the answer,
// at most until the session's Deadline; see remover.
func (p *place) release() error {
	defer p.close()
	p.guard.stop()
	p.lease.Prepare() // nothing is held, but the answer should still come in time
	return p.remover.remove(p.s, p.path)
}
