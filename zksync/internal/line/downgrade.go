package line

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// Downgrade turns a writer's hold, which was acquired through q, into a reader's grant.
// If it fails, nothing is held.
func (r *Readers) Downgrade(ctx context.Context, q *LocalQueue, g *Grant) (*Grant, error) {
	err := g.end() // from here on other callers may read
	if err == nil {
		err = r.untainted(ctx, "downgrade")
	}
	if err == nil && ctx.Err() != nil {
		err = session.Cancelled(ctx)
	}
	if err == nil {
		g, err = r.exchange(ctx, q.shared)
	}
	// In doubt, endTurn deletes the writer's znode, and MultiProtected deletes the reader's.
	q.endTurn(nil)
	if err != nil {
		return nil, err
	}
	if err := r.admit(ctx, g); err != nil {
		if err == errTainted {
			err = fmt.Errorf("%w: %w", session.ErrLost, err)
		}
		return nil, err
	}
	return g, nil
}

// exchange replaces the znode of a writer by the znode of a reader with the same sequence
// number, in one transaction, and returns the grant of the new znode. Curator downgrades
// in the same way.
func (r *Readers) exchange(ctx context.Context, c *contender) (*Grant, error) {
	number := c.name[strings.LastIndex(c.name, c.line.Name)+len(c.line.Name):]
	// The number makes the reader's znode the first, in front of the writers that wait.
	// Without the transaction a writer could be granted between the two steps.
	c.state = inDoubt
	paths, _, err := c.s.MultiProtected(ctx,
		&zk.CreateRequest{Path: session.Protect(znode.Join(c.line.Dir.Path, r.line.Name)) + number, Data: c.line.Data, Flags: zk.FlagEphemeral},
		&zk.DeleteRequest{Path: c.path, Version: -1})
	if session.ClassOf(err) == session.ClassNoNode {
		return nil, c.removed()
	}
	if err != nil {
		return nil, err
	}
	return c.exchange(c.token, paths), nil
}
