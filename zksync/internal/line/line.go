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
// the earlier contenders that block it are gone. The algorithm is the lock recipe of the
// ZooKeeper documentation, with two refinements. A contender learns from the transaction
// that creates it whether it is alone. And it watches the two nearest contenders that
// block it: when the nearest one leaves, it already knows whether another one blocks it.
type Line struct {
	Manager *session.Manager
	Dir     *znode.Directory
	Rule    Rule
	Class   Class
	Op      string // the operation in messages about waiting
	Name    string // of a contender, before its sequence number
	Data    []byte // of a contender

	newest atomic.Pointer[ahead] // of the contender that began to wait last
}

// stand joins the line and waits until the contender is granted, under one session after
// another if a session ends.
func (l *Line) stand(ctx context.Context) (*contender, error) {
	var p *contender
	err := l.Manager.Retry(ctx, func(s *session.Session) (err error) {
		if p, err = l.join(ctx, s, "", true); err != nil {
			return err
		}
		if err = p.wait(ctx); err != nil {
			p.leave()
			p = nil
		}
		return err
	})
	return p, err
}

// try joins the line, and stays only if the contender is granted at once. Otherwise try
// returns nil, after the znode was deleted.
func (l *Line) try(ctx context.Context) (*contender, error) {
	var p *contender
	err := l.Manager.Retry(ctx, func(s *session.Session) (err error) {
		p, err = l.tryUnder(ctx, s)
		return err
	})
	return p, err
}

// tryUnder is try under one session.
func (l *Line) tryUnder(ctx context.Context, s *session.Session) (*contender, error) {
	p, err := l.join(ctx, s, "", false)
	if p == nil {
		return nil, err
	}
	first, err := p.first(ctx)
	switch {
	case err == nil && first:
		return p, nil
	case err == nil:
		p.withdraw(ctx)
	default:
		p.leave()
	}
	return nil, err
}

// join creates a contender at the end of the line. The same transaction deletes the
// znode replace if that is not empty. If join fails, both znodes do not exist or are
// being deleted. If the counter of the directory is exhausted, join waits for another
// directory, or returns nil if wait is false.
func (l *Line) join(ctx context.Context, s *session.Session, replace string, wait bool) (*contender, error) {
	p, err := l.enter(ctx, s, replace)
	for round := 0; err == znode.ErrExhausted; round++ {
		if again, err := l.Dir.Recreate(ctx, s, wait); !again || err != nil {
			return nil, err
		}
		if err := s.Pause(ctx, round); err != nil {
			return nil, err
		}
		p, err = l.enter(ctx, s, "")
	}
	return p, err
}

// enter is join without waiting: it fails with znode.ErrExhausted if the counter of the
// directory is exhausted.
func (l *Line) enter(ctx context.Context, s *session.Session, replace string) (*contender, error) {
	p := &contender{lineView: lineView{line: l, s: s}, lease: s.Lease(), remover: uniqueName{}}
	err := p.create(ctx, replace)
	if err == nil {
		return p, nil
	}
	if err == znode.ErrExhausted {
		// The directory exists while our contender is in it.
		if failed := l.Dir.MarkExhausted(ctx, s); failed != nil {
			err = failed
		}
	}
	p.lease.End()
	for _, path := range []string{p.path, replace} {
		if path != "" {
			s.Discard(path)
		}
	}
	return nil, err
}

func (p *contender) create(ctx context.Context, replace string) error {
	l, s := p.line, p.s
	for round := 0; ; round++ {
		if err := s.Pause(ctx, round-1); err != nil {
			return err
		}
		touch, err := l.Dir.Writable(ctx, s)
		if err != nil {
			return err
		}
		var ops []any
		if replace != "" {
			ops = append(ops, &zk.DeleteRequest{Path: replace, Version: -1})
		}
		ops = append(ops, &zk.CreateRequest{
			Path: session.Protect(znode.Join(l.Dir.Path, l.Name)), Data: l.Data, Flags: zk.FlagEphemeralSequential,
		})
		if touch {
			ops = append(ops, &zk.SetDataRequest{Path: l.Dir.Path, Data: []byte{}, Version: -1})
		}
		paths, results, err := s.MultiProtected(ctx, ops...)
		if err == nil {
			return p.created(paths[0], results, touch)
		}
		failed := session.FailedOp(results)
		switch class := session.ClassOf(err); {
		case class == session.ClassNoNode && replace != "" && failed == 0:
			return session.ErrRemoved
		case class == session.ClassNoNode:
			err = l.Dir.Create(ctx, s)
		case class == session.ClassNoAuth && touch && failed == len(ops)-1:
			l.Dir.Forbid()
			err = nil
		case class == session.ClassNodeExists:
			err = znode.ErrExhausted
		}
		if err != nil {
			return err
		}
	}
}

// created notes the path, the token and the number of children from the results of the
// transaction. The results are nil if only the znode is known to exist.
func (p *contender) created(path string, results []zk.MultiResponse, touched bool) error {
	p.path = path
	p.lease.Own(path)
	p.name = znode.Base(path)
	_, seq, ok := p.line.Rule.Parse(p.name)
	if !ok {
		return fmt.Errorf("the server named a contender %q, which has no sequence number", path)
	}
	if !znode.Countable(seq) {
		return znode.ErrExhausted
	}
	p.seq = seq
	if touched && len(results) > 0 {
		// This transaction has changed the directory last. So the Stat has its zxid, and
		// counts our znode.
		stat := results[len(results)-1].Stat
		p.token = stat.Mzxid
		p.alone = stat.NumChildren == 1
	}
	return nil
}
