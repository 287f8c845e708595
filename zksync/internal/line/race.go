package line

import (
	"context"
	"math/rand/v2"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Race is an election by one ephemeral znode: all candidates try to create the
// znode, the candidate that succeeds leads, and the others try again when the znode is
// gone. The order of arrival does not count.
type Race struct {
	Manager *session.Manager
	Path    string
	ID      []byte // the data of the znode
}

// Acquire races until this candidate leads, under one session after another if
// necessary.
func (r *Race) Acquire(ctx context.Context) (*Grant, error) {
	var g *Grant
	err := r.Manager.Retry(ctx, func(s *session.Session) (err error) {
		g, err = r.acquireUnder(ctx, s)
		return err
	})
	return g, err
}

// acquireUnder is Acquire under one session.
func (r *Race) acquireUnder(ctx context.Context, s *session.Session) (*Grant, error) {
	h, err := takeSlot(ctx, r.Manager, s, r.Path)
	if err != nil {
		return nil, err
	}
	// The session's id makes the waits differ between candidates, and a simulation
	// repeatable.
	rnd := rand.New(rand.NewPCG(uint64(s.ID()), 1))
	run := &raceRun{Race: r, s: s, h: h, rnd: rnd, window: minWindow, seen: nothingSeen}
	stat, err := run.win(ctx)
	if err != nil {
		// Another value of this session must not race before the znode is known to be gone.
		switch {
		case run.late != nil:
			go h.settle(run.late) // ends with the session at the latest
		case run.doubtful:
			h.discardZnodes(nil)
		default:
			h.close()
		}
		return nil, err
	}
	h.created(stat)
	lease := s.Lease()
	lease.ReportAs(r.Path)
	lease.Own(r.Path)
	if err := znode.Grant(ctx, lease); err != nil {
		lease.End()
		go h.giveUp() // ends with the session at the latest
		return nil, err
	}
	return newGrant(s, lease, stat.Czxid, h, nil, r.Path), nil
}

// List returns the leader. The list is empty without a leader, and if n is zero.
func (r *Race) List(ctx context.Context, s *session.Session, n int) ([]Listed, error) {
	data, stat, err := s.Get(ctx, r.Path)
	switch {
	case session.ClassOf(err) == session.ClassNoNode || err == nil && !znode.IsSession(stat.EphemeralOwner) || n == 0:
		return nil, nil
	case err != nil:
		return nil, err
	}
	leader := znode.Node{Name: znode.Base(r.Path), Data: data, Stat: stat}
	return []Listed{{Dir: znode.Dir(r.Path), Node: leader, Class: Exclusive, Holds: true}}, nil
}

// follow returns the znode of the leader; see Contest.
func (r *Race) follow(ctx context.Context, s *session.Session) ([]byte, *zk.Stat, *session.Watch, error) {
	data, stat, w, err := znode.WatchData(ctx, s, r.Path)
	switch {
	case session.ClassOf(err) == session.ClassNoNode:
		ok, _, w, err := s.WatchExists(ctx, r.Path)
		return noLeader(w, err, ok)
	case err == nil && !znode.IsSession(stat.EphemeralOwner):
		// No candidate has created such a znode, and it names no leader: see raceRun.rest.
		data, stat = nil, nil
	}
	return data, stat, w, err
}
