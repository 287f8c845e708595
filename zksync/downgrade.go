package zksync

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// Downgrade turns the write lock that this value holds into a read lock, and no
// writer gets the lock in between. Waiting readers get the lock too; waiting writers
// wait until RUnlock. Call RUnlock in place of Unlock from then on.
//
// It fails with ErrNotHeld if this value holds no write lock. After any other error
// nothing is held, and no Unlock or RUnlock is needed: the lock had been lost
// (ErrLost), or Downgrade released it because ctx ended before the outcome was known,
// or because the server refused the request.
func (rw *RWMutex) Downgrade(ctx context.Context) error {
	_, err := rw.downgrade(ctx)
	return opError("downgrade", rw.w.path, err)
}

// DowngradeContext is Downgrade with a context like the one of RLockContext. Its
// token is the token of the write lock. The context of the write lock ends with
// ErrReleased.
func (rw *RWMutex) DowngradeContext(ctx context.Context) (context.Context, error) {
	st, err := rw.downgrade(ctx)
	if err != nil {
		return nil, opError("downgrade", rw.w.path, err)
	}
	held, _ := rw.r.context(ctx, st.token)
	return held, nil
}

func (rw *RWMutex) downgrade(ctx context.Context) (*stake, error) {
	rw.w.mu.Lock()
	h := rw.w.held
	rw.w.held = nil
	rw.w.mu.Unlock()
	if h == nil {
		return nil, ErrNotHeld
	}
	p := h.p
	err := p.lost()
	if err == nil {
		// From here on others may read.
		h.end(ErrReleased)
		err = rw.r.untainted(ctx)
	} else {
		h.end(err)
	}
	if err == nil && ctx.Err() != nil {
		err = session.Cancelled(ctx)
	}
	if err != nil {
		rw.w.in.abandon(p)
		return nil, err
	}
	st, err := p.exchange(ctx, rw.r.line.name)
	if err != nil {
		p.leave() // both, if it is not known which
		rw.w.in.local.leave()
		return nil, err
	}
	rw.w.in.spend(p)
	if err := rw.r.admit(st); err != nil {
		st.leave()
		if err == errTainted {
			err = fmt.Errorf("%w: %w", ErrLost, err)
		}
		return nil, err
	}
	return st, nil
}

// exchange replaces the znode that holds by another znode, with the same number
// behind mark, in one transaction, and returns the stake of the new znode. Curator
// downgrades in the same way.
func (p *place) exchange(ctx context.Context, mark string) (*stake, error) {
	number, _ := numberBehind(p.name, p.line.name)
	paths, _, err := p.s.MultiProtected(ctx,
		&zk.CreateRequest{Path: session.Protect(znode.Join(p.line.dir.Path, mark)) + number, Data: p.line.data, Flags: zk.FlagEphemeral},
		&zk.DeleteRequest{Path: p.path, Version: -1})
	if session.ClassOf(err) == session.ClassNoNode {
		return nil, ErrRemoved
	}
	if err != nil {
		return nil, err
	}
	return &stake{s: p.s, lease: p.takeLease(paths[0]), paths: paths, guards: []*guard{guardZnode(p.s, paths[0], nil)}, token: p.token}, nil
}

// numberBehind is what follows the last mark in a name.
func numberBehind(name, mark string) (string, bool) {
	i := strings.LastIndex(name, mark)
	if i < 0 {
		return "", false
	}
	return name[i+len(mark):], true
}
