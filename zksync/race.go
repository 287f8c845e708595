package zksync

import (
	"context"
	"fmt"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A race is an election by one ephemeral znode: all candidates try to create the
// znode, the candidate that succeeds leads, and the others try again when the znode is
// gone. The order of arrival does not count.
type race struct {
	m    *session.Manager
	path string
	id   []byte // the data of the znode
}

// stand races until this candidate leads, under one session after another if
// necessary.
func (r *race) stand(ctx context.Context) (*place, error) {
	var p *place
	err := r.m.Retry(ctx, func(s *session.Session) (err error) {
		p, err = r.standUnder(ctx, s)
		return err
	})
	return p, err
}

// standUnder is stand under one session.
func (r *race) standUnder(ctx context.Context, s *session.Session) (*place, error) {
	h, err := slots.take(ctx, s, r.path)
	if err != nil {
		return nil, err
	}
	run := newRaceRun(r, s)
	stat, err := run.win(ctx)
	if err != nil {
		if run.doubtful && s.Err() == nil {
			h.discard(s, r.path)
		} else {
			h.close()
		}
		return nil, err
	}
	h.version = stat.Version
	p := &place{s: s, lease: s.Lease(), remover: h, path: r.path, name: znode.Base(r.path), token: stat.Czxid}
	p.lease.Own(r.path)
	if err := p.grant(ctx); err != nil {
		p.leave()
		return nil, err
	}
	p.guard.whenGone(h.close)
	return p, nil
}

func (r *race) list(ctx context.Context, s *session.Session, n int) ([]Contender, error) {
	data, stat, err := s.Get(ctx, r.path)
	switch {
	case session.ClassOf(err) == session.ClassNoNode || err == nil && !isSession(stat.EphemeralOwner) || n == 0:
		return nil, nil
	case err != nil:
		return nil, err
	}
	leader := contender(znode.Dir(r.path), exclusive, znode.Node{Name: znode.Base(r.path), Data: data, Stat: stat})
	leader.Holds = true
	return []Contender{leader}, nil
}

func (r *race) follow(ctx context.Context, s *session.Session, report func(Candidate)) (*session.Watch, error) {
	data, stat, w, err := s.WatchData(ctx, r.path)
	switch {
	case session.ClassOf(err) == session.ClassNoNode:
		ok, _, w, err := s.WatchExists(ctx, r.path)
		return nobody(w, err, ok, report)
	case err != nil:
		return nil, err
	}
	leader := Candidate{}
	if isSession(stat.EphemeralOwner) {
		leader = candidate(data, stat)
	}
	report(leader)
	return w, nil
}

// isSession reports whether the owner of a znode is a session. The server marks
// containers and znodes with a time to live by owners that are no sessions.
func isSession(owner int64) bool {
	return owner != 0 && uint64(owner) != 1<<63 && uint64(owner)>>56 != 0xff
}

// checkRaced fails for a znode that no session owns: the race would never end.
func checkRaced(path string, owner int64) error {
	if isSession(owner) {
		return nil
	}
	return fmt.Errorf("%w: %s is a persistent znode, want none or the ephemeral of a leader: perhaps the election has another layout", session.ErrConflict, path)
}
