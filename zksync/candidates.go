package zksync

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
)

// A Candidate is what others see of one that stands in an Election. The zero
// Candidate stands for nobody.
type Candidate struct {
	ID      string // as given by WithID, or by a LeaderLatch
	Token   int64  // its fencing token, should it lead: see Token
	Session int64  // the id of the session by which it stands
}

// Leader returns who leads, as of the time of the call, and ErrNoLeader when
// nobody stands. It commits a transaction without effect first (see
// session.Session.SyncQuorum), and is repeated over lost connections and sessions
// until ctx ends.
func (e *Election) Leader(ctx context.Context) (Candidate, error) {
	all, err := e.candidates(ctx, 1)
	if err == nil && len(all) == 0 {
		err = ErrNoLeader
	}
	if err != nil {
		return Candidate{}, opError("leader", e.path, err)
	}
	return all[0], nil
}

// Candidates returns who stands, in the order in which they will lead, the
// leader first. It is repeated like Leader.
func (e *Election) Candidates(ctx context.Context) ([]Candidate, error) {
	all, err := e.candidates(ctx, -1)
	return all, opError("candidates", e.path, err)
}

// candidates returns the first n, or all if n is negative.
func (e *Election) candidates(ctx context.Context, n int) ([]Candidate, error) {
	if e.err != nil {
		return nil, e.err
	}
	var all []Candidate
	err := e.line.m.Do(ctx, func(ctx context.Context, s *session.Session) error {
		if err := s.SyncQuorum(ctx, e.path); err != nil {
			return err
		}
		var err error
		all, err = e.list(ctx, s, n)
		return err
	})
	return all, err
}

func (e *Election) list(ctx context.Context, s *session.Session, n int) ([]Candidate, error) {
	for round := 0; ; round++ {
		if err := s.Pause(ctx, round-1); err != nil {
			return nil, err
		}
		names, _, err := s.Children(ctx, e.path)
		if session.ClassOf(err) == session.ClassNoNode {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		places := e.line.rule.sort(names)
		if n >= 0 && len(places) > n {
			places = places[:n]
		}
		names = names[:0]
		for _, p := range places {
			names = append(names, p.name)
		}
		found, err := readAll(ctx, s, e.path, names)
		if err != nil {
			return nil, err
		}
		all := make([]Candidate, 0, len(found))
		for _, z := range found {
			all = append(all, candidate(z.data, z.stat))
		}
		if len(all) == len(names) {
			return all, nil
		}
		// Somebody has left since the listing.
	}
}

func candidate(data []byte, stat *zk.Stat) Candidate {
	return Candidate{ID: string(data), Token: stat.Czxid, Session: stat.EphemeralOwner}
}

// Observe reports the leader, and then each change of leader, over lost
// connections and sessions of the observer. The zero Candidate says that nobody
// leads. A Candidate that was not received is replaced by the newest. The stream
// ends with ctx, when the Manager is closed, and when the path is invalid or may
// not be read; its Err is a *watch.EndError, which says which of these it was.
// Observing takes no part in the election.
func (e *Election) Observe(ctx context.Context) *watch.Stream[Candidate] {
	return watch.NewStream(ctx, "election", e.path, func(ctx context.Context, report func(Candidate, any)) error {
		if e.err != nil {
			return e.err
		}
		return e.line.m.Do(ctx, func(ctx context.Context, s *session.Session) error {
			return e.observe(ctx, s, func(c Candidate) { report(c, c) })
		})
	})
}

// observe follows the leader for as long as the session lasts. It watches the
// leader's znode alone, so that candidates that join and leave behind the leader
// wake no observer.
func (e *Election) observe(ctx context.Context, s *session.Session, report func(Candidate)) error {
	for {
		w, err := e.follow(ctx, s, report)
		if err != nil {
			return err
		}
		if w == nil {
			continue
		}
		select {
		case ev := <-w.Events():
			if ev.Type == zk.EventNotWatching {
				return ev.Err
			}
		case <-ctx.Done():
			w.Stop()
			return session.Cancelled(ctx)
		}
	}
}

// follow reports the present leader and returns a watch for the next change, or
// nil if the state has changed during the reads.
func (e *Election) follow(ctx context.Context, s *session.Session, report func(Candidate)) (*session.Watch, error) {
	names, _, err := s.Children(ctx, e.path)
	if session.ClassOf(err) == session.ClassNoNode {
		ok, _, w, err := s.WatchExists(ctx, e.path)
		return e.nobody(w, err, ok, report)
	}
	if err != nil {
		return nil, err
	}
	places := e.line.rule.sort(names)
	if len(places) == 0 {
		names, _, w, err := s.WatchChildren(ctx, e.path)
		return e.nobody(w, err, len(e.line.rule.sort(names)) > 0, report)
	}
	data, stat, w, err := s.WatchData(ctx, child(e.path, places[0].name))
	if session.ClassOf(err) == session.ClassNoNode {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	report(candidate(data, stat))
	return w, nil
}

// nobody reports that nobody leads, unless a candidate has joined meanwhile.
func (e *Election) nobody(w *session.Watch, err error, come bool, report func(Candidate)) (*session.Watch, error) {
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
