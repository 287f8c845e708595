package zksync

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksync/internal/line"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Candidate describes a candidate of an Election. The zero Candidate describes no
// candidate.
type Candidate struct {
	ID      string // as given by WithID, or by a LeaderLatch
	Token   int64  // its fencing token, should it lead: see Token
	Session int64  // the id of the session by which it stands
}

// Leader returns the leader as of the time of the call, and ErrNoLeader if there is
// no candidate. It first commits a transaction without effect (see
// session.Session.SyncQuorum), and is repeated over lost connections and sessions
// until ctx ends.
func (e *Election) Leader(ctx context.Context) (Candidate, error) {
	all, err := e.contenders(ctx, 1)
	if err == nil && len(all) == 0 {
		err = ErrNoLeader
	}
	if err != nil {
		return Candidate{}, opError("leader", e.path, err)
	}
	return all[0].candidate(), nil
}

// Candidates returns the candidates in the order in which they will lead, the leader
// first. With LayoutEphemeral the candidates have no order and leave no trace before
// they lead, so Candidates returns the leader alone. It is repeated like Leader.
func (e *Election) Candidates(ctx context.Context) ([]Candidate, error) {
	line, err := e.contenders(ctx, -1)
	if err != nil {
		return nil, opError("candidates", e.path, err)
	}
	all := make([]Candidate, len(line))
	for i, c := range line {
		all[i] = c.candidate()
	}
	return all, nil
}

// contenders returns the first n candidates, or all if n is negative.
func (e *Election) contenders(ctx context.Context, n int) ([]Contender, error) {
	if e.err != nil {
		return nil, e.err
	}
	return converted(znode.ReadCommitted(ctx, e.m, e.path, func(ctx context.Context, s *session.Session) ([]line.Listed, error) {
		return e.contest.List(ctx, s, n)
	}))
}

func (c Contender) candidate() Candidate {
	return Candidate{ID: c.ID, Token: c.Token, Session: c.Session}
}

// candidate returns the zero Candidate for a nil Stat.
func candidate(data []byte, stat *zk.Stat) Candidate {
	if stat == nil {
		return Candidate{}
	}
	return Candidate{ID: string(data), Token: stat.Czxid, Session: stat.EphemeralOwner}
}

// Observe reports the leader, and then each change of leader, over lost connections
// and sessions of the observer. The zero Candidate says that there is no leader. A
// Candidate that was not received is replaced by the newest. The stream ends with
// ctx, when the Manager is closed, and when the path is invalid or may not be read;
// its Err is a *watch.EndError, which says which of these it was. Observing takes no
// part in the election.
func (e *Election) Observe(ctx context.Context) *watch.Stream[Candidate] {
	return watch.NewStream(ctx, "election", e.path, func(ctx context.Context, report func(Candidate, any)) error {
		if e.err != nil {
			return e.err
		}
		return e.m.Do(ctx, func(ctx context.Context, s *session.Session) error {
			return e.observe(ctx, s, func(data []byte, stat *zk.Stat) {
				c := candidate(data, stat)
				report(c, c)
			})
		})
	})
}

// observe follows the leader for as long as the session lasts. It watches the
// leader's znode alone, so that candidates that join and leave behind the leader
// wake no observer.
func (e *Election) observe(ctx context.Context, s *session.Session, report func(data []byte, stat *zk.Stat)) error {
	for round := 0; ; {
		w, err := e.contest.Follow(ctx, s, report)
		if err == nil && w == nil {
			err = s.Pause(ctx, round)
			round++
		}
		if err != nil {
			return err
		}
		if w == nil {
			continue
		}
		round = 0
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
