package zksync

import (
	"context"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session"
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

// Observe tells who leads, and each change from then on, also through losses
// of the observer's own connections and sessions. The zero Candidate is told when
// nobody leads. The channel has a buffer of one, in which the newest replaces one
// that was not read; it is closed when ctx ends, when the Manager is closed, and
// when the path is invalid or may not be read, which is logged. Observing takes no
// part in the election.
func (e *Election) Observe(ctx context.Context) <-chan Candidate {
	ch := make(chan Candidate, 1)
	over := func(why error) {
		e.line.m.Logger().Warn("an election cannot be observed any more", zap.String("path", e.path), zap.Error(why))
	}
	if e.err != nil {
		over(e.err)
		close(ch)
		return ch
	}
	go func() {
		defer close(ch)
		told := false
		var last Candidate
		tell := func(c Candidate) {
			if told && c == last {
				return
			}
			told, last = true, c
			select {
			case <-ch:
			default:
			}
			ch <- c
		}
		err := e.line.m.Do(ctx, func(ctx context.Context, s *session.Session) error {
			return e.observe(ctx, s, tell)
		})
		if ctx.Err() == nil && session.ClassOf(err) != session.ClassClosed {
			over(err)
		}
	}()
	return ch
}

// observe follows the leader for as long as the session lasts. It watches the
// leader's znode alone, so that those who come and go behind it wake nobody.
func (e *Election) observe(ctx context.Context, s *session.Session, tell func(Candidate)) error {
	for {
		w, err := e.follow(ctx, s, tell)
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

// follow tells the present leader and returns a watch for the next change, nil
// if the state changed while it looked.
func (e *Election) follow(ctx context.Context, s *session.Session, tell func(Candidate)) (*session.Watch, error) {
	names, _, err := s.Children(ctx, e.path)
	if session.ClassOf(err) == session.ClassNoNode {
		ok, _, w, err := s.WatchExists(ctx, e.path)
		return e.nobody(w, err, ok, tell)
	}
	if err != nil {
		return nil, err
	}
	places := e.line.rule.sort(names)
	if len(places) == 0 {
		names, _, w, err := s.WatchChildren(ctx, e.path)
		return e.nobody(w, err, len(e.line.rule.sort(names)) > 0, tell)
	}
	data, stat, w, err := s.WatchData(ctx, child(e.path, places[0].name))
	if session.ClassOf(err) == session.ClassNoNode {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	tell(candidate(data, stat))
	return w, nil
}

// nobody tells that nobody leads, unless somebody has come meanwhile.
func (e *Election) nobody(w *session.Watch, err error, come bool, tell func(Candidate)) (*session.Watch, error) {
	switch {
	case session.ClassOf(err) == session.ClassNoNode:
		return nil, nil
	case err != nil:
		return nil, err
	case come:
		w.Stop()
		return nil, nil
	}
	tell(Candidate{})
	return w, nil
}
