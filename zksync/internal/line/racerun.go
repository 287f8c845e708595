package line

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// After the znode has gone, a candidate waits for a random part of a window before it
// tries to create the znode, so that not all of many candidates send a create of which
// all but one fail. A window begins at minWindow and doubles with each create that came
// too late. So the windows grow with the number of candidates, which no candidate
// knows.
const (
	minWindow = 10 * time.Millisecond
	maxWindow = time.Second
)

// nothingSeen stands for the version of a leader's znode that a candidate has not seen.
const nothingSeen = -1

// versionAfter returns the data version that raceRun.create gives a leader's znode,
// which differs from the version of the leader's znode before, if the candidate has seen
// it: so a leader that resigns by a delete at its own version deletes no znode of its
// successor. A plain client leaves version 0.
func versionAfter(seen int32) int32 {
	switch seen {
	case nothingSeen:
		return 3
	case 1:
		return 2
	}
	return 1
}

// A raceRun is the race of one candidate under one session. The candidate has the slot
// of the znode.
type raceRun struct {
	*Race
	s      *session.Session
	h      *slotHold
	rnd    *rand.Rand
	window time.Duration
	seen   int32 // the version of the newest znode of another leader

	// What is known of the newest create, if it has not succeeded:
	late     <-chan session.MultiOutcome // of a create whose answer this run has not awaited; see Session.MultiLate
	doubtful bool                        // its answer was lost, and no look has told the outcome
}

// isDoubtful reports whether a transaction may have happened, or may happen yet, although it has failed.
func isDoubtful(err error) bool {
	class := session.ClassOf(err)
	return class == session.ClassConnectionLost || class == session.ClassUnknown
}

// statOf returns the Stat of the znode from the results of a create that has succeeded.
func statOf(results []zk.MultiResponse) *zk.Stat { return results[len(results)-1].Stat }

// win creates the znode as soon as no other candidate has it, and returns the Stat of
// the znode.
func (r *raceRun) win(ctx context.Context) (*zk.Stat, error) {
	for {
		stat, err := r.create(ctx)
		if stat != nil || err != nil {
			return stat, err
		}
		for vacant := false; !vacant; {
			if vacant, err = r.rest(ctx); err != nil {
				return nil, err
			}
		}
		r.window = min(2*r.window, maxWindow)
	}
}

// create tries to create the znode. It returns nil if another candidate has it.
func (r *raceRun) create(ctx context.Context) (*zk.Stat, error) {
	for round := 0; ; round++ {
		if err := r.s.Pause(ctx, round-1); err != nil {
			return nil, err
		}
		// The setData changes nothing but the version. Its answer has the Stat, and so
		// the fencing token.
		ops := []any{&zk.CreateRequest{Path: r.Path, Data: r.ID, Flags: zk.FlagEphemeral}}
		r.h.version = versionAfter(r.seen)
		for version := range r.h.version {
			ops = append(ops, &zk.SetDataRequest{Path: r.Path, Data: r.ID, Version: version})
		}
		results, late, err := r.s.MultiLate(ctx, ops...)
		// A caller that gives up must delete a znode that may be ours without our knowledge, and no other znode.
		r.late, r.doubtful = late, isDoubtful(err)
		switch session.ClassOf(err) {
		case session.ClassOK:
			return statOf(results), nil
		case session.ClassNodeExists:
			// No repetition of ours can meet our own znode: MultiLate repeats nothing, and a lost
			// answer is looked up below.
			return nil, nil
		case session.ClassNoNode:
			if err := r.s.MakeDir(ctx, znode.Dir(r.Path)); err != nil {
				return nil, err
			}
		case session.ClassConnectionLost:
			stat, err := findOwn(ctx, r.h)
			if stat != nil || err != nil {
				return stat, err
			}
			r.doubtful = false
		default:
			return nil, err
		}
	}
}

// rest waits for the next change of the znode. While there is no znode, rest waits no
// longer than a random part of the window, and then reports that the znode is vacant.
func (r *raceRun) rest(ctx context.Context) (vacant bool, err error) {
	leads, err := znode.WatchPresent(ctx, r.s, "campaign", r.Path)
	if session.ClassOf(err) == session.ClassNoNode {
		return r.restVacant(ctx)
	}
	if err != nil {
		return false, err
	}
	owner := leads.Stat.EphemeralOwner
	if !znode.IsSession(owner) {
		leads.Watch.Stop()
		// The race would never end.
		return false, fmt.Errorf("%w: %s is a persistent znode, want none or the ephemeral of a leader: perhaps the election has another layout", session.ErrConflict, r.Path)
	}
	r.seen = leads.Stat.Version // see versionAfter
	wait := r.Manager.StartWaitAt(zap.InfoLevel, "campaign", r.Path, func(ctx context.Context) error { return r.leader(ctx, owner) })
	defer wait.Stop()
	deleted, err := leads.Await(ctx, r.s)
	switch {
	case session.ClassOf(err) == session.ClassCancelled:
		return false, wait.Cancelled(ctx)
	case deleted:
		return r.restVacant(ctx)
	}
	return false, err
}

// restVacant is rest without a znode.
func (r *raceRun) restVacant(ctx context.Context) (vacant bool, err error) {
	// exists leaves a watch on a znode that does not exist. So another candidate's create
	// ends the rest at once.
	var ok bool
	var w *session.Watch
	err = znode.ReadPatiently(ctx, r.s, "campaign", r.Path, func() (err error) {
		ok, _, w, err = r.s.WatchExists(ctx, r.Path)
		return err
	})
	if err != nil || ok {
		w.Stop()
		return false, err
	}
	ev, err := znode.Await(ctx, r.s, w, time.After(time.Duration(r.rnd.Int64N(int64(r.window)))))
	return ev == 0 && err == nil, err
}

// leader names the leader for messages: by the id if that can be read, and by the
// session in any case.
func (r *raceRun) leader(ctx context.Context, owner int64) error {
	id := "another candidate"
	if ctx.Err() == nil {
		if data, stat, err := r.s.Get(ctx, r.Path); err == nil {
			id, owner = znode.Label(data), stat.EphemeralOwner
		}
	}
	return fmt.Errorf("while %s leads (session 0x%x)", id, uint64(owner))
}

// findOwn returns the Stat of the znode of the slot, and nil if it does not exist. An
// absence counts only behind a commit: see rendezvous.Participant.findAfterLoss.
func findOwn(ctx context.Context, h *slotHold) (*zk.Stat, error) {
	s, path := h.key.s, h.key.path
	if err := s.SyncQuorum(ctx, path); err != nil {
		return nil, err
	}
	ok, stat, err := s.Exists(ctx, path)
	if err != nil || !ok || !h.owns(stat) {
		return nil, err
	}
	return stat, nil
}

// deleteRaced deletes the znode of the slot, which was created. It fails with ErrRemoved if the znode at path is
// another one. The request is never repeated without another look: the repetition could delete the znode of the next
// leader.
func deleteRaced(ctx context.Context, h *slotHold) error {
	// A next leader that has not seen our znode may have chosen the same version. After this look,
	// only a removal at this very moment can put such a znode here. The server does not show a znode
	// that this client may not read.
	err := h.key.s.DeleteSeen(ctx, h.key.path, func(ok bool, stat *zk.Stat, err error) (int32, error) {
		switch {
		case err == nil && (!ok || !h.owns(stat)):
			err = session.ErrRemoved
		case session.ClassOf(err) == session.ClassNoAuth:
			err = nil
		}
		return h.version, err
	})
	if session.ClassOf(err) != session.ClassBadVersion {
		return err
	}
	// Either another client has changed the data of our znode, or the znode belongs to
	// another candidate, which came after another client had removed ours.
	if own, failed := findOwn(ctx, h); own == nil {
		return cmp.Or(failed, session.ErrRemoved)
	}
	return err
}
