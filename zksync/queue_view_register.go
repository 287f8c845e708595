package zksync

import (
	"context"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// register registers this value as a consumer, until disappear.
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

// waitForLostSessions waits until the servers have ended the sessions that this value has lost:
// the messages that those sessions claimed come first, and would be passed over. All
// ephemerals of a session are deleted together.
func (v *queueView) waitForLostSessions(ctx context.Context) error {
	for {
		v.c.mu.Lock()
		lost := v.c.lostSessions
		v.c.mu.Unlock()
		if len(lost) == 0 {
			return nil
		}
		path, err := v.findClaimOf(ctx, lost)
		if err != nil {
			return err
		}
		if path == "" {
			v.c.mu.Lock()
			v.c.lostSessions = v.c.lostSessions[len(lost):]
			v.c.mu.Unlock()
			continue
		}
		there, stat, w, err := v.s.WatchExists(ctx, path)
		if err != nil {
			return err
		}
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

// findClaimOf finds a claim of one of the sessions.
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
