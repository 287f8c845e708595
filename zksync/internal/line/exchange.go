package line

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// Downgrade turns a writer's hold, which was acquired through local, into a reader's
// grant. If it fails, nothing is held.
func (r *Readers) Downgrade(ctx context.Context, local *LocalQueue, h *Hold) (*Grant, error) {
	p := h.p
	err := p.lost()
	if err == nil {
		// From here on other callers may read.
		h.end(ErrReleased)
		err = r.untainted(ctx)
	} else {
		h.end(err)
	}
	if err == nil && ctx.Err() != nil {
		err = session.Cancelled(ctx)
	}
	if err != nil {
		local.abandon(p)
		return nil, err
	}
	st, err := p.exchange(ctx, r.line.Name)
	if err != nil {
		p.leave() // deletes both znodes: it may be unknown which of them exists
		local.turn.unlock()
		return nil, err
	}
	local.spend(p)
	if err := r.admit(st); err != nil {
		st.leave()
		if err == errTainted {
			err = fmt.Errorf("%w: %w", session.ErrLost, err)
		}
		return nil, err
	}
	return st, nil
}

// exchange replaces the znode of a hold by another znode with the same sequence number
// behind mark, in one transaction, and returns the grant of the new znode. Curator
// downgrades in the same way.
func (p *contender) exchange(ctx context.Context, mark string) (*Grant, error) {
	number, _ := numberBehind(p.name, p.line.Name)
	paths, _, err := p.s.MultiProtected(ctx,
		&zk.CreateRequest{Path: session.Protect(znode.Join(p.line.Dir.Path, mark)) + number, Data: p.line.Data, Flags: zk.FlagEphemeral},
		&zk.DeleteRequest{Path: p.path, Version: -1})
	if session.ClassOf(err) == session.ClassNoNode {
		return nil, session.ErrRemoved
	}
	if err != nil {
		return nil, err
	}
	return &Grant{s: p.s, lease: p.takeLease(paths[0]), paths: paths, guards: []*holdGuard{newGuard(p.s, paths[0], nil)}, token: p.token}, nil
}

// numberBehind returns the text that follows the last mark in a name.
func numberBehind(name, mark string) (string, bool) {
	i := strings.LastIndex(name, mark)
	if i < 0 {
		return "", false
	}
	return name[i+len(mark):], true
}
