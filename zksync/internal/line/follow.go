package line

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// Hold waits in line until the contender is first.
func (l *Line) Hold(ctx context.Context) (*Hold, error) {
	p, err := l.stand(ctx)
	if err != nil {
		return nil, err
	}
	return &Hold{p: p}, nil
}

// List returns the first n contenders in order, or all if n is negative.
func (l *Line) List(ctx context.Context, s *session.Session, n int) ([]Listed, error) {
	return l.Rule.List(ctx, s, l.Dir.Path, n)
}

// Follow reports the znode of the first contender, or a nil Stat if there is none, and
// returns a watch for the next change. It returns nil if the line has changed during
// the reads.
func (l *Line) Follow(ctx context.Context, s *session.Session, report func(data []byte, stat *zk.Stat)) (*session.Watch, error) {
	names, _, err := s.Children(ctx, l.Dir.Path)
	if session.ClassOf(err) == session.ClassNoNode {
		ok, _, w, err := s.WatchExists(ctx, l.Dir.Path)
		return reportNone(w, err, ok, report)
	}
	if err != nil {
		return nil, err
	}
	places := l.Rule.sort(names)
	if len(places) == 0 {
		names, _, w, err := s.WatchChildren(ctx, l.Dir.Path)
		return reportNone(w, err, len(l.Rule.sort(names)) > 0, report)
	}
	data, stat, w, err := s.WatchData(ctx, znode.Join(l.Dir.Path, places[0].name))
	if session.ClassOf(err) == session.ClassNoNode {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	report(data, stat)
	return w, nil
}

// reportNone reports that no candidate leads, unless a candidate has joined meanwhile.
func reportNone(w *session.Watch, err error, come bool, report func(data []byte, stat *zk.Stat)) (*session.Watch, error) {
	switch {
	case session.ClassOf(err) == session.ClassNoNode:
		return nil, nil
	case err != nil:
		return nil, err
	case come:
		w.Stop()
		return nil, nil
	}
	report(nil, nil)
	return w, nil
}
