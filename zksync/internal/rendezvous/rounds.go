package rendezvous

import (
	"context"

	"github.com/go-zookeeper/zk"
)

// awaitNext waits until no round goes on, and leaves a watch for the next round.
func (p *Participant) awaitNext(ctx context.Context) error {
	for {
		if p.watch == nil {
			if err := p.watchReady(ctx); err != nil {
				return err
			}
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

// awaitEnd waits until the ready of p.round is gone, and deletes it if no participant
// has a child.
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
			return nil
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
			return nil
		case nothing:
			if err := p.readDirectory(ctx); err != nil {
				return err
			}
		}
	}
}
