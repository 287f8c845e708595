package zksync

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksync/internal/line"
)

// A Candidate describes a candidate of an Election. The zero Candidate describes no
// candidate.
type Candidate struct {
	ID      string // as given by WithID, or by a LeaderLatch
	Token   int64  // its fencing token, should it lead: see Token
	Session int64  // the id of the session by which it stands
}

// Leader returns the leader as of the time of the call, and ErrNoLeader if there is
// no candidate. It reads like Mutex.Contenders.
func (e *Election) Leader(ctx context.Context) (Candidate, error) {
	all, err := e.list(ctx, "leader", 1)
	if err != nil {
		return Candidate{}, err
	}
	if len(all) == 0 {
		return Candidate{}, e.opError("leader", ErrNoLeader)
	}
	return candidateOf(all[0]), nil
}

// Candidates returns the candidates in the order in which they will lead, the leader
// first. With LayoutEphemeral the candidates have no order and leave no trace before
// they lead, so Candidates returns the leader alone. It reads like Mutex.Contenders.
func (e *Election) Candidates(ctx context.Context) ([]Candidate, error) {
	found, err := e.list(ctx, "candidates", -1)
	if err != nil {
		return nil, err
	}
	all := make([]Candidate, len(found))
	for i, c := range found {
		all[i] = candidateOf(c)
	}
	return all, nil
}

// Contenders returns the candidates like Candidates: see Mutex.Contenders.
func (e *Election) Contenders(ctx context.Context) ([]Contender, error) {
	return e.list(ctx, "contenders", -1)
}

// list is listContenders with the contest, which is nil in a zero Election: its List must not be looked up before the
// check.
func (e *Election) list(ctx context.Context, op string, n int) ([]Contender, error) {
	return e.listContenders(ctx, op, func(ctx context.Context, s *session.Session, n int) ([]line.Listed, error) {
		return e.contest.List(ctx, s, n)
	}, n)
}

func candidateOf(c Contender) Candidate {
	return Candidate{ID: c.ID, Token: c.Token, Session: c.Session}
}

// Observe reports the leader, and then each change of leader, over lost connections
// and sessions of the observer. The zero Candidate says that there is no leader. A
// Candidate that was not received is replaced by the newest. The stream ends with
// ctx, when the Manager is closed, and when the path is invalid or may not be read;
// its Err is a *watch.EndError with the reason.
func (e *Election) Observe(ctx context.Context) *watch.Stream[Candidate] {
	return watch.NewStream(ctx, "election", e.path, func(ctx context.Context, report func(Candidate, any)) error {
		if err := e.invalid(); err != nil {
			return err
		}
		return e.m.Do(ctx, func(ctx context.Context, s *session.Session) error {
			return line.Observe(ctx, s, e.contest, func(data []byte, stat *zk.Stat) {
				var c Candidate
				if stat != nil {
					c = Candidate{ID: string(data), Token: stat.Czxid, Session: stat.EphemeralOwner}
				}
				report(c, c)
			})
		})
	})
}
