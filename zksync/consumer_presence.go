package zksync

import (
	"context"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// appear registers this value as a consumer, until disappear.
func (o *outlook) appear(ctx context.Context) (string, error) {
	dir := o.c.q.child(consumersName)
	for round := 0; ; round++ {
		if err := o.s.Pause(ctx, round-1); err != nil {
			return "", err
		}
		path, err := o.s.CreateProtected(ctx, znode.Join(dir, "consumer"), nil, zk.FlagEphemeral)
		if err == nil {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.peers = 1
			return path, nil
		}
		if session.ClassOf(err) != session.ClassNoNode {
			return "", err
		}
		if err := o.s.MakeDir(ctx, dir); err != nil {
			return "", err
		}
	}
}

func (o *outlook) disappear(path string) {
	o.mu.Lock()
	o.peers = 0
	o.mu.Unlock()
	if o.s.Err() == nil {
		select {
		case <-o.s.Discard(path):
		case <-o.c.life.Done():
		}
	}
}

// succeed waits until the servers have ended the sessions that this value has lost:
// the messages that those sessions claimed come first, and would be passed over. All
// ephemerals of a session are deleted together.
func (o *outlook) succeed(ctx context.Context) error {
	for {
		o.c.mu.Lock()
		former := o.c.former
		o.c.mu.Unlock()
		if len(former) == 0 {
			return nil
		}
		path, err := o.claimOf(ctx, former)
		if err != nil {
			return err
		}
		if path == "" {
			o.c.mu.Lock()
			o.c.former = o.c.former[len(former):]
			o.c.mu.Unlock()
			continue
		}
		there, stat, w, err := o.s.WatchExists(ctx, path)
		if err != nil {
			return err
		}
		if there && slices.Contains(former, stat.EphemeralOwner) {
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

// claimOf finds a claim of one of the sessions.
func (o *outlook) claimOf(ctx context.Context, sessions []int64) (string, error) {
	dir := o.c.q.child(claimsName)
	names, _, err := o.s.Children(ctx, dir)
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
		results, err := o.s.MultiRead(ctx, reads...)
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
