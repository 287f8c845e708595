package line

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Line is the line of contenders of one class in a directory. A contender waits until
// the earlier contenders that block it are gone, by the lock recipe of the ZooKeeper
// documentation with the refinements that docs/architecture.md lists.
type Line struct {
	Manager *session.Manager
	Dir     *znode.Directory
	Rule    Rule
	Class   Class
	Op      string // the operation in messages about waiting
	Name    string // of a contender, before its sequence number
	Data    []byte // of a contender
	Standby bool   // waits are no sign of a fault, even for days

	newest atomic.Pointer[ahead] // of the contender that began to wait last, while it waits
}

// Acquire waits in line until a contender is granted.
func (l *Line) Acquire(ctx context.Context) (*Grant, error) {
	c, err := l.stand(ctx, nil)
	switch {
	case err == nil:
		return c.grant, nil
	case c != nil:
		// ctx has ended, and no other goroutine can take over the position in line.
		c.discard()
	}
	return nil, err
}

// stand waits until c is granted, or a new contender if c is nil. If a session is lost, a
// new contender joins the line under the next session. If ctx ends first, stand returns
// the error, and with it the contender if the contender still waits.
func (l *Line) stand(ctx context.Context, c *contender) (*contender, error) {
	err := l.Manager.Retry(ctx, func(s *session.Session) (err error) {
		if c == nil {
			if c, err = l.join(ctx, s, "", true); err != nil {
				return err
			}
		}
		if err = c.confirm(ctx, c.wait(ctx)); err != nil && session.ClassOf(err) != session.ClassCancelled {
			// The session or the znode is lost, or the server refuses: this contender can
			// not be granted any more.
			c.discard()
			c = nil
		}
		return err
	})
	return c, err
}

// try joins the line, and stays only if the contender is granted at once. Otherwise try
// returns nil, after the znode was deleted. It fails if the server refuses to delete the znode.
func (l *Line) try(ctx context.Context) (*contender, error) {
	var c *contender
	err := l.Manager.Retry(ctx, func(s *session.Session) (err error) {
		if c, err = l.join(ctx, s, "", false); c == nil {
			return err
		}
		ok, err := c.tryHold(ctx)
		switch {
		case err != nil:
			c.discard()
		case !ok:
			// TryLock promises that no znode is left: a waiter behind it would be granted
			// late, and the next TryLock would fail because of ours.
			err = znode.AwaitRemoval(ctx, c.discard())
		default:
			return nil
		}
		c = nil
		return err
	})
	return c, err
}

// join creates a contender at the end of the line. The same transaction deletes the
// znode replace if that is not empty. If join fails, both znodes do not exist or are
// being deleted. If the counter of the directory is exhausted, join waits for another
// directory, or returns nil if wait is false.
func (l *Line) join(ctx context.Context, s *session.Session, replace string, wait bool) (*contender, error) {
	c, err := l.joinOnce(ctx, s, replace)
	// The directory can only be created again when it is empty. Our contender is gone, so
	// contenders that see the exhausted counter do not wait for each other.
	for round := 0; err == errExhausted; round++ {
		if again, err := l.Dir.Recreate(ctx, s, wait, l.Rule.Has); !again || err != nil {
			return nil, err
		}
		if err := s.Pause(ctx, round); err != nil {
			return nil, err
		}
		c, err = l.joinOnce(ctx, s, "")
	}
	return c, err
}

// joinOnce is join without waiting for another directory: it fails with errExhausted,
// after its znodes were deleted, if the counter of the directory is exhausted.
func (l *Line) joinOnce(ctx context.Context, s *session.Session, replace string) (*contender, error) {
	c := &contender{lineView: lineView{line: l, s: s}, lease: s.Lease()}
	err := l.create(ctx, c, replace)
	if err == nil {
		return c, nil
	}
	if err == errExhausted {
		// The directory exists while our contender is in it.
		if failed := l.Dir.MarkExhausted(ctx, s); failed != nil {
			err = failed
		}
	}
	// After a failure it may be unknown whether the transaction has replaced the znode: no
	// caller uses either of the two znodes, so both are deleted.
	c.lease.End()
	for _, path := range []string{c.path, replace} {
		if path == "" {
			continue
		}
		gone := s.Discard(path)
		if err != errExhausted {
			continue
		}
		// A try gives up if the directory is not empty, and our own znode must not be the reason.
		if failed := znode.AwaitRemoval(ctx, gone); failed != nil {
			err = failed
		}
	}
	return nil, err
}

// create creates the znode of a contender; see join.
func (l *Line) create(ctx context.Context, c *contender, replace string) error {
	for round := 0; ; round++ {
		if err := c.s.Pause(ctx, round-1); err != nil {
			return err
		}
		touch, err := l.Dir.Writable(ctx, c.s)
		if err != nil {
			return err
		}
		cr := creation{dir: l.Dir, name: l.Name, data: l.Data, n: 1, touch: touch}
		if replace != "" {
			cr.first = []any{&zk.DeleteRequest{Path: replace, Version: -1}}
		}
		paths, dir, failed, err := cr.send(ctx, c.s)
		switch {
		case err == nil:
			return c.created(paths[0], dir)
		case replace != "" && failed == 0 && session.ClassOf(err) == session.ClassNoNode:
			// Another client has removed the contender, so the transaction has created nothing.
			return session.ErrRemoved
		case err != errAgain:
			return err
		}
	}
}

// created notes the path of the znode, and, if dir is known, the token. dir is the Stat
// of the directory after the transaction.
func (c *contender) created(path string, dir *zk.Stat) error {
	// The path is noted before the checks: after a failure the caller deletes the znode.
	c.path, c.name = path, znode.Base(path)
	c.lease.Own(path)
	_, seq, ok := c.line.Rule.Parse(c.name)
	if !ok {
		return fmt.Errorf("the server created a contender %q, want a name with a sequence number", path)
	}
	if !znode.Countable(seq) {
		return errExhausted
	}
	c.seq = seq
	if dir != nil {
		// The transaction has changed the directory last. So its zxid is the czxid of our
		// znode. And if our znode is the only child, it is first: no listing is needed, and
		// a contender that joins later is behind it.
		c.token = dir.Mzxid
		if dir.NumChildren == 1 {
			c.state = first
		}
	}
	return nil
}

// closed returns ErrClosed when the Manager is closed.
func (l *Line) closed() error {
	select {
	case <-l.Manager.Done():
		return session.ErrClosed
	default:
		return nil
	}
}
