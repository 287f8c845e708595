package line

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A contender is a znode of ours in a line. One goroutine at a time uses it: the
// goroutine that waits in line or holds.
type contender struct {
	lineView
	lease   *session.Lease
	remover contenderRemover

	alone bool // the directory had no other child when it was created

	guard      *holdGuard       // while it holds
	contention *contentionWatch // while it rests, and from then on

	unsure bool // a transaction that removes it may have happened
}

// wait waits until no contender blocks this one and the lease is held. If ctx ends, the
// contender stays in line, and wait may be called again. After any other error call
// leave.
func (p *contender) wait(ctx context.Context) error {
	return p.confirm(ctx, p.await(ctx))
}

// confirm finds the reason of a removal. The end of our session removes our znode as
// well, and the server may report the removal first: another client removed the znode
// only if the leader still knows the session.
func (p *contender) confirm(ctx context.Context, err error) error {
	if session.ClassOf(err) == session.ClassRemoved {
		if err := p.s.SyncQuorum(ctx, p.line.Dir.Path); err != nil {
			return err
		}
	}
	return err
}

func (p *contender) await(ctx context.Context) error {
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
			wait = p.line.Manager.StartWait(p.line.Op, p.line.Dir.Path, p.ahead.reason)
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
			if granted && !p.line.Rule.overtaken(p.line.Class) {
				return p.grant(ctx)
			}
		case ev := <-p.far.events():
			if ev.Type == zk.EventNotWatching {
				return znode.LossOf(ev.Err)
			}
			// The nearest contender still blocks us. Find out whether it is the only one.
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

// first reports whether no contender blocks this one. If so, the lease is held.
func (p *contender) first(ctx context.Context) (bool, error) {
	first := p.alone
	if !first {
		f, err := p.survey(ctx)
		if err != nil {
			return false, p.confirm(ctx, err)
		}
		if first = f.near == ""; !first {
			return false, nil // only a contender that waits needs watches
		}
	}
	p.alone = false
	return true, p.grant(ctx)
}

// ownEvent returns the loss that an event on our own znode reports, nil for none.
func ownEvent(ev zk.Event) error {
	switch ev.Type {
	case zk.EventNodeDeleted:
		return session.ErrRemoved
	case zk.EventNotWatching:
		return znode.LossOf(ev.Err)
	}
	return nil
}

// look lists the line, and watches our own znode and the two nearest contenders that
// block us. If many contenders may wait for the same ones, it watches only the nearest.
// It reports whether no contender blocks us. If the nearest contender has left already,
// p.near is nil afterwards.
func (p *contender) look(ctx context.Context) (first bool, err error) {
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
	if p.line.Rule.together(p.line.Class) {
		f.far = ""
	}
	return false, p.watchNeighbours(ctx, f.near, f.far)
}

// grant begins to hold: it holds the lease and guards the znode.
func (p *contender) grant(ctx context.Context) error {
	if err := znode.Grant(ctx, p.lease); err != nil {
		return err
	}
	p.guard = newGuard(p.s, p.path, p.own)
	p.own = nil // the guard stops it
	return nil
}

// lost returns the loss of a contender that was granted, nil if it is not lost.
func (p *contender) lost() error {
	if err := znode.SessionLost(p.s); err != nil {
		return err
	}
	return p.guard.lost()
}

// leave deletes the znode in the background. The deletion is retried until the znode is
// gone or the session has ended.
func (p *contender) leave() {
	p.close()
	p.remover.discard(p.s, p.path)
}

// withdraw is leave that waits, bounded by ctx, until the znode is gone.
func (p *contender) withdraw(ctx context.Context) {
	select {
	case <-p.remover.discard(p.s, p.path):
	case <-ctx.Done():
	}
	p.close()
}

// close stops the watches and the guard and ends the lease. The znode stays.
func (p *contender) close() {
	p.contention.stop()
	p.guard.stop()
	if p.own != nil {
		p.own.Stop()
		p.own = nil
	}
	p.forgetNeighbours()
	p.lease.End()
}

// release deletes the znode of a contender that was held and waits for the answer, at
// most until the session's Deadline; see contenderRemover.
func (p *contender) release() error {
	defer p.close()
	p.guard.stop()
	p.lease.Prepare() // nothing is held, but the answer should still come in time
	return p.remover.remove(p.s, p.path)
}
