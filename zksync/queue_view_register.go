package zksync

import (
	"context"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// register registers this value as a consumer until deregister, and returns the path of
// the registration.
func (v *queueView) register(ctx context.Context) (string, error) {
	dir := v.c.q.child(consumersName)
	for round := 0; ; round++ {
		if err := v.s.Pause(ctx, round-1); err != nil {
			return "", err
		}
		path, err := v.s.CreateProtected(ctx, znode.Join(dir, "consumer"), nil, zk.FlagEphemeral)
		if err == nil {
			v.mu.Lock()
			defer v.mu.Unlock()
			// refreshStale counts the consumers before the first pick, because a nil
			// consumerListing is stale.
			v.peers = 1
			return path, nil
		}
		if session.ClassOf(err) != session.ClassNoNode {
			return "", err
		}
		if err := v.s.MakeDir(ctx, dir); err != nil {
			return "", err
		}
	}
}

// deregister deletes the registration. It waits for the deletion, but no longer than Close.
func (v *queueView) deregister(path string) {
	v.mu.Lock()
	v.peers = 0
	v.mu.Unlock()
	if v.s.Err() == nil {
		select {
		case <-v.s.Discard(path):
		case <-v.c.cleanupCtx.Done():
		}
	}
}

// waitForLostSessions waits until the servers have ended the sessions that this value
// has lost. Before that, the claims of these sessions keep their messages from everyone,
// and this value would deliver later messages first.
func (v *queueView) waitForLostSessions(ctx context.Context) error {
	for {
		v.c.mu.Lock()
		lost := v.c.lostSessions
		v.c.mu.Unlock()
		if len(lost) == 0 {
			return nil
		}
		// One claim stands for all: the servers delete all ephemerals of a session in one
		// transaction.
		path, err := v.findClaimOf(ctx, lost)
		if err != nil {
			return err
		}
		if path == "" {
			v.c.mu.Lock()
			v.c.lostSessions = v.c.lostSessions[len(lost):]
			v.c.mu.Unlock()
			continue // with the sessions that were lost in the meantime
		}
		there, stat, w, err := v.s.WatchExists(ctx, path)
		if err != nil {
			return err
		}
		// The session may have ended, and another one may have claimed the message since.
		if there && slices.Contains(lost, stat.EphemeralOwner) {
			select {
			case <-w.Events():
			case <-ctx.Done():
			}
		}
		w.Stop()
		if ctx.Err() != nil {
			return session.Cancelled(ctx)
		}
	}
}

// findClaimOf returns the path of a claim of one of the sessions, "" if there is none.
func (v *queueView) findClaimOf(ctx context.Context, sessions []int64) (string, error) {
	dir := v.c.q.child(claimsName)
	names, _, err := v.s.Children(ctx, dir)
	if session.ClassOf(err) == session.ClassNoNode {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for some := range slices.Chunk(names, maxPrefetch) {
		reads := make([]session.Read, len(some))
		for i, name := range some {
			reads[i] = session.ReadData(znode.Join(dir, name))
		}
		results, err := v.s.MultiRead(ctx, reads...)
		if err != nil {
			return "", err
		}
		for i, r := range results {
			if r.Err == nil && slices.Contains(sessions, r.Stat.EphemeralOwner) {
				return znode.Join(dir, some[i]), nil
			}
		}
	}
	return "", nil
}
