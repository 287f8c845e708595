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
		if p.watch == nil {
			if err := p.watchReady(ctx); err != nil {
				return err
			}
		}
		if p.ready == 0 && p.b.unfinished == 0 {
			return nil
		}
		if p.ready == 0 {
			p.round = p.b.unfinished
			if err := p.readDirectory(ctx); err != nil {
				return err
			}
			if err := p.awaitRest(ctx); err != nil {
				return err
			}
			p.b.unfinished = 0
			continue
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
		if p.watch == nil {
			if err := p.watchReady(ctx); err != nil {
				return err
			}
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
func (p *Participant) awaitRest(ctx context.Context) error {
	p.unwatch()
	var rest []string // the participants of the round; nil before the first listing
	// With a drift of 0, no participant of another client has ever changed the directory; see note.
	for p.drift != 0 {
		var names []string
		var w *session.Watch
		err := p.ask(ctx, func() (err error) {
			names, _, w, err = p.s.WatchChildren(ctx, p.b.path)
			return err
		})
		if session.ClassOf(err) == session.ClassNoNode {
			return nil
		}
		if err != nil {
			return err
		}
		names = slices.DeleteFunc(names, func(name string) bool {
			return !IsParticipant(name) || rest != nil && !slices.Contains(rest, name)
		})
		if rest, err = p.inRound(ctx, names); err != nil || len(rest) == 0 {
			w.Stop()
			return err
		}
		p.there.Store(int32(len(rest)))
		p.wait.listed(rest)
		p.wait.start(true)
		err = znode.AwaitEvent(ctx, p.s, w)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return p.wait.cancelled(ctx)
		default:
			return znode.LossOf(err)
		}
	}
	return nil
}

// inRound returns the names of the participants that were there before the ready of p.round.
func (p *Participant) inRound(ctx context.Context, names []string) (rest []string, err error) {
	var found []znode.Node
	err = p.ask(ctx, func() (err error) {
		found, err = znode.StatAll(ctx, p.s, p.b.path, names)
		return err
	})
	rest = make([]string, 0, len(found))
	for _, z := range found {
		// By the czxid, since a participant of kazoo's enters the next round under the same name.
		if z.Stat.Czxid < p.round {
			rest = append(rest, z.Name)
		}
	}
	return rest, err
}
