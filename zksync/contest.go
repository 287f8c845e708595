package zksync

import (
	"context"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A contest is how candidates come to lead.
type contest interface {
	// stand waits until the candidate leads.
	stand(ctx context.Context) (*place, error)
	// list returns the first n candidates in order, or all if n is negative.
	list(ctx context.Context, s *session.Session, n int) ([]Contender, error)
	// follow reports the present leader, or the zero Candidate, and returns a watch
	// for the next change. It returns nil if the state has changed during the reads.
	follow(ctx context.Context, s *session.Session, report func(Candidate)) (*session.Watch, error)
}

// A lineContest is an election of the candidate that has been in line for longest.
type lineContest struct{ *line }

func (l lineContest) list(ctx context.Context, s *session.Session, n int) ([]Contender, error) {
	return l.rule.contenders(ctx, s, l.dir.Path, n)
}

func (l lineContest) follow(ctx context.Context, s *session.Session, report func(Candidate)) (*session.Watch, error) {
	names, _, err := s.Children(ctx, l.dir.Path)
	if session.ClassOf(err) == session.ClassNoNode {
		ok, _, w, err := s.WatchExists(ctx, l.dir.Path)
		return nobody(w, err, ok, report)
	}
	if err != nil {
		return nil, err
	}
	places := l.rule.sort(names)
	if len(places) == 0 {
		names, _, w, err := s.WatchChildren(ctx, l.dir.Path)
		return nobody(w, err, len(l.rule.sort(names)) > 0, report)
	}
	data, stat, w, err := s.WatchData(ctx, znode.Join(l.dir.Path, places[0].name))
	if session.ClassOf(err) == session.ClassNoNode {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	report(candidate(data, stat))
	return w, nil
}

// nobody reports that there is no leader, unless a candidate has joined meanwhile.
func nobody(w *session.Watch, err error, come bool, report func(Candidate)) (*session.Watch, error) {
	switch {
	case session.ClassOf(err) == session.ClassNoNode:
		return nil, nil
	case err != nil:
		return nil, err
	case come:
		w.Stop()
		return nil, nil
	}
	report(Candidate{})
	return w, nil
}
