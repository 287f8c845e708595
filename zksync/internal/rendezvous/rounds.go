package rendezvous

import (
	"context"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// awaitNext waits until no round goes on, and leaves a watch for the next round.
func (p *Participant) awaitNext(ctx context.Context) error {
	for {
		if err := p.watchReady(ctx); err != nil {
			return err
		}
		if p.ready == 0 {
			return nil
		}
		// If all participants of that round have crashed, awaitEnd finds by the count that none is
		// left, and deletes ready.
		p.round = p.ready
		if err := p.readDirectory(ctx); err != nil {
			return err
		}
		if err := p.awaitEnd(ctx); err != nil {
			return err
		}
	}
}

// awaitOpening waits until ready exists, and creates ready if enough participants have
// joined. It reports whether the round includes the participant.
func (p *Participant) awaitOpening(ctx context.Context) (in bool, err error) {
	for stale := 0; ; {
		// The count may include ready and strange children. Only the names tell, and they are
		// listed only if the count is great enough.
		if p.count >= p.b.size {
			there, ready, err := p.list(ctx)
			if err != nil {
				return false, err
			}
			switch {
			case ready:
				p.unwatch() // its answer is older than the listing
			case there >= p.b.size:
				opened, err := p.open()
				if opened || err != nil {
					return opened, err
				}
				if err := p.pause(stale); err != nil {
					return false, err
				}
				stale++
				continue // the directory has changed: list it again
			}
		}
		if p.watch == nil {
			if err := p.watchReady(ctx); err != nil {
				return false, err
			}
			p.round = p.ready
			if p.ready != 0 {
				// If ready is older than the child, its round does not include the participant.
				if p.ready < p.czxid {
					return false, nil
				}
				// Nor does it if another client has deleted the child before.
				err := p.requireChild(ctx)
				return err == nil, err
			}
		}
		ev, err := p.awaitChange(ctx)
		if err != nil {
			return false, err
		}
		p.count = 0 // unknown until the directory is read
		if ev != nothing {
			continue
		}
		// No watch reports that another client has deleted the child.
		if err := p.requireChild(ctx); err != nil {
			return false, err
		}
		if err := p.readDirectory(ctx); err != nil {
			return false, err
		}
	}
}

// awaitEnd waits until the ready of p.round and the participants of the round are gone. It deletes
// ready if no participant has a child.
func (p *Participant) awaitEnd(ctx context.Context) error {
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
		if err := p.watchReady(ctx); err != nil {
			return err
		}
		if p.ready != p.round {
			return p.awaitRest(ctx)
		}
		var ev zk.EventType
		// After a clear that was refused, the directory has changed, and is read again at once.
		if !empty {
			if ev, err = p.awaitChange(ctx); err != nil {
				return err
			}
		}
		switch ev {
		case zk.EventNodeDeleted:
			return p.awaitRest(ctx)
		case nothing:
			if err := p.readDirectory(ctx); err != nil {
				return err
			}
		}
	}
}

// awaitRest waits until the participants of the round are gone whose ready is gone. The participants of
// this package delete ready when they have all left, and kazoo's when the first of them begins to leave.
// Without the permissions to list and to read, ready alone tells.
func (p *Participant) awaitRest(ctx context.Context) error {
	p.unwatch()
	if ours, err := p.endedByTouch(ctx); ours || err != nil {
		return err
	}
	names, err := p.inRound(ctx)
	// One after another, so that each departure wakes a participant once.
	for i := 0; err == nil && i < len(names); i++ {
		p.there.Store(int32(len(names) - i))
		p.wait.listed(names[i:])
		err = p.awaitDeparture(ctx, names[i])
	}
	switch session.ClassOf(err) {
	case session.ClassNoNode, session.ClassNoAuth: // the directory is gone, or may not be listed
		return nil
	}
	return err
}

// endedByTouch reports whether ready was deleted by a participant of this package, after all had left:
// since the participant has joined, each change of the directory was a transaction with a touch.
func (p *Participant) endedByTouch(ctx context.Context) (bool, error) {
	// With a drift of 0, no other client has ever changed the directory, and nobody has crashed; see note.
	if p.drift == 0 {
		return true, nil
	}
	if !p.joined {
		return false, nil
	}
	if err := p.readDirectory(ctx); err != nil {
		return false, err
	}
	return p.drift == p.driftAtJoin, nil
}

// inRound returns the names of the participants that were there before the ready of p.round.
func (p *Participant) inRound(ctx context.Context) (in []string, err error) {
	var found []znode.Node
	err = p.ask(ctx, func() error {
		names, _, err := p.s.Children(ctx, p.b.path)
		if err == nil {
			names = slices.DeleteFunc(names, func(name string) bool { return !IsParticipant(name) })
			found, err = znode.StatAll(ctx, p.s, p.b.path, names)
		}
		return err
	})
	for _, z := range found {
		if z.Stat.Czxid < p.round {
			in = append(in, z.Name)
		}
	}
	return in, err
}

// awaitDeparture waits until a participant of the round is gone.
func (p *Participant) awaitDeparture(ctx context.Context, name string) error {
	p.wait.start(true)
	for {
		g, err := znode.WatchPresent(ctx, p.s, p.wait.op, znode.Join(p.b.path, name))
		if session.ClassOf(err) == session.ClassNoNode {
			return nil
		}
		if err != nil {
			return err
		}
		if g.Stat.Czxid > p.round {
			g.Watch.Stop() // a participant of kazoo's enters the next round under the same name
			return nil
		}
		if _, err := g.Await(ctx, p.s); session.ClassOf(err) == session.ClassCancelled {
			return p.wait.cancelled(ctx)
		} else if err != nil {
			return err
		}
	}
}
