package zksync

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// note takes down what the directory has told of itself.
func (p *participant) note(stat *zk.Stat) {
	p.count, p.version = int(stat.NumChildren), stat.Version
	there := p.count - p.b.foreign
	if p.round != 0 {
		there-- // ready
	}
	p.there.Store(int32(max(0, there)))
}

// empty says whether there is no participant in the barrier. Children that are
// strangers make the count of the directory too high, so where it is low enough
// for them to be all that there is, their names decide.
func (p *participant) empty(ctx context.Context) (bool, error) {
	if p.count <= 1 {
		return true, nil
	}
	if p.count > 1+p.b.foreign && p.count > p.patience {
		return false, nil
	}
	there, _, err := p.list(ctx)
	return err == nil && there == 0, err
}

// list counts the participants by name, and says whether ready is there.
func (p *participant) list(ctx context.Context) (there int, ready bool, err error) {
	names, stat, err := p.s.Children(ctx, p.b.path)
	if session.ClassOf(err) == session.ClassNoNode {
		names, stat, err = nil, &zk.Stat{}, nil
	}
	if err != nil {
		return 0, false, err
	}
	p.patience, p.b.foreign = 0, 0
	for _, name := range names {
		switch {
		case name == readyName:
			ready = true
		case isParticipant(name):
			there++
		default:
			p.b.foreign++
		}
	}
	p.note(stat)
	p.wait.listed(names)
	return there, ready, nil
}

// lookAtReady reads whether ready is there, and leaves a watch on it.
func (p *participant) lookAtReady(ctx context.Context) error {
	ok, stat, w, err := p.s.WatchExists(ctx, p.readyPath())
	if err != nil {
		return err
	}
	p.unwatch()
	p.watch, p.open = w, 0
	if ok {
		p.open = stat.Czxid
	}
	return nil
}

// lookAtDirectory reads the count and the version.
func (p *participant) lookAtDirectory(ctx context.Context) error {
	conn := p.s.Connection()
	_, stat, err := p.s.Exists(ctx, p.b.path)
	if err != nil {
		return err
	}
	if stat == nil {
		stat = &zk.Stat{}
	}
	p.conn = conn
	p.note(stat)
	return nil
}

// findAfterLoss is find after a lost answer, and tells whether the request was
// carried out. An absence counts only behind a commit: a leader that was deposed
// shows nothing of what its successor has committed. What may still come over the old
// connection is refused.
func (p *participant) findAfterLoss() (bool, error) {
	if err := p.s.SyncQuorum(background, p.b.path); err != nil {
		return false, err
	}
	return p.find(background)
}

// find reports whether our child exists.
func (p *participant) find(ctx context.Context) (bool, error) {
	data, stat, err := p.s.Get(ctx, p.path)
	switch {
	case session.ClassOf(err) == session.ClassNoNode:
		return false, nil
	case err != nil:
		return false, err
	case string(data) != p.mark:
		return false, nil
	}
	p.czxid = stat.Czxid
	return true, nil
}
