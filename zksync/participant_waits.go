package zksync

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"
)

// awaitNext returns when no round goes on, with a watch for the next.
func (p *participant) awaitNext(ctx context.Context) error {
	for {
		if p.watch == nil {
			if err := p.lookAtReady(ctx); err != nil {
				return err
			}
		}
		if p.open == 0 {
			return nil
		}
		p.round = p.open
		if err := p.lookAtDirectory(ctx); err != nil {
			return err
		}
		if err := p.awaitEnd(ctx); err != nil {
			return err
		}
	}
}

// gather waits until ready is there, and makes it if enough have come. It
// reports whether that has let us in.
func (p *participant) gather(ctx context.Context) (in bool, err error) {
	for stale := 0; ; {
		if p.count >= p.b.n {
			there, ready, err := p.list(ctx)
			if err != nil {
				return false, err
			}
			switch {
			case ready:
				p.unwatch() // what it told is old
			case there >= p.b.n:
				opened, err := p.openUp()
				if opened || err != nil {
					return opened, err
				}
				if err := p.pause(stale); err != nil {
					return false, err
				}
				stale++
				continue // as things are now
			}
		}
		if p.watch == nil {
			if err := p.lookAtReady(ctx); err != nil {
				return false, err
			}
			p.round = p.open
			if p.open != 0 {
				return p.open > p.czxid, nil
			}
		}
		ev, err := p.rest(ctx)
		if err != nil {
			return false, err
		}
		p.count = 0 // until somebody tells otherwise, nobody has come
		if ev != nothing {
			continue
		}
		if ok, err := p.find(ctx); err != nil {
			return false, err
		} else if !ok {
			return false, ErrRemoved
		}
		if err := p.lookAtDirectory(ctx); err != nil {
			return false, err
		}
	}
}

// awaitEnd returns when the ready of p.round is gone, and removes it where
// nobody is left who would.
func (p *participant) awaitEnd(ctx context.Context) error {
	for stale := 0; ; {
		empty, err := p.empty(ctx)
		if err != nil {
			return err
		}
		if empty {
			cleared, err := p.clear()
			if cleared || err != nil {
				p.unwatch()
				return err
			}
			if err := p.pause(stale); err != nil {
				return err
			}
			stale++
			p.unwatch()
		}
		if p.watch == nil {
			if err := p.lookAtReady(ctx); err != nil {
				return err
			}
		}
		if p.open != p.round {
			return nil
		}
		var ev zk.EventType
		if !empty {
			if ev, err = p.rest(ctx); err != nil {
				return err
			}
		}
		switch ev {
		case zk.EventNodeDeleted:
			return nil
		case nothing:
			if err := p.lookAtDirectory(ctx); err != nil {
				return err
			}
		}
	}
}

// listedPerTick is how many names a participant is ready to read for each
// session timeout that it waits, to see whether they are those of participants.
const listedPerTick = 16

// nothing is what rest returns when it is only time to look again.
const nothing zk.EventType = 0

// rest waits for a change of ready. It returns nothing when the connection is
// another one than that which told the count, and once in about a session timeout:
// nobody is told of those that crash.
func (p *participant) rest(ctx context.Context) (zk.EventType, error) {
	if p.states == nil {
		var states context.Context
		states, p.stop = context.WithCancel(context.Background())
		p.states = p.b.m.States(states)
	}
	p.wait.start(p.round != 0)
	period := p.s.Timeout()
	tick := time.NewTimer(3*period/4 + rand.N(period/2))
	defer tick.Stop()
	for {
		select {
		case ev := <-p.watch.Events():
			p.watch = nil
			if ev.Type == zk.EventNotWatching {
				return nothing, lossOf(ev.Err)
			}
			return ev.Type, nil
		case _, ok := <-p.states:
			if !ok {
				return nothing, lossOf(ErrClosed)
			}
			if conn := p.s.Connection(); conn != 0 && conn != p.conn {
				return nothing, nil
			}
		case <-tick.C:
			p.patience += listedPerTick
			return nothing, nil
		case <-p.s.Done():
			return nothing, lossOf(p.s.Err())
		case <-ctx.Done():
			return nothing, p.wait.cancelled(ctx)
		}
	}
}
