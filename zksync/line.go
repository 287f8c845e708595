package zksync

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A class is a kind of place, as a reader's or a writer's.
type class uint8

const exclusive class = 0

// A rule has the differences between the lines of different primitives.
type rule struct {
	// parse tells a place in the line from a foreign child.
	parse func(name string) (c class, seq int32, ok bool)
	// blocks says whether an earlier place of one class keeps out a later one
	// of another.
	blocks func(theirs, ours class) bool
	// overtaken says that a place may appear in front of a place that already waits,
	// so that an end of waiting must be confirmed by a listing.
	overtaken func(ours class) bool
	// together says that any number of places may be let in by the same event, so
	// that an event that does not let them in yet should not wake all of them.
	together func(ours class) bool
}

// exclusively is the rule of lines whose first place alone holds.
func exclusively(parse func(name string) (class, int32, bool)) rule {
	return rule{
		parse:     parse,
		blocks:    func(class, class) bool { return true },
		overtaken: func(class) bool { return false },
		together:  func(class) bool { return false },
	}
}

// A line is the common engine of Mutex, RWMutex, Semaphore and Election: the
// ephemeral sequential children of a directory, each of which waits until the earlier
// children that block it are gone. It is the lock recipe of the ZooKeeper
// documentation, with two refinements: a place learns from the transaction that
// creates it whether it is alone, and it watches its two nearest predecessors, so
// that when the nearest one leaves, the place already knows that no other place
// blocks it.
type line struct {
	m     *session.Manager
	dir   *znode.Directory
	rule  rule
	class class
	op    string // in messages about waiting
	name  string // of a place, before its number
	data  []byte

	newest atomic.Pointer[ahead] // of the place that began to wait last
}

// stand joins the line and waits until it is first, under one session after
// another if need be.
func (l *line) stand(ctx context.Context) (*place, error) {
	var p *place
	err := l.m.Retry(ctx, func(s *session.Session) (err error) {
		if p, err = l.join(ctx, s, ""); err != nil {
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

// try joins the line, and stays only if it is first at once. If not it returns
// nil, and nothing is left of the attempt, not even for a moment.
func (l *line) try(ctx context.Context) (*place, error) {
	var p *place
	err := l.m.Retry(ctx, func(s *session.Session) (err error) {
		p, err = l.tryUnder(ctx, s)
		return err
	})
	return p, err
}

// tryUnder is try under one session.
func (l *line) tryUnder(ctx context.Context, s *session.Session) (*place, error) {
	p, err := l.enter(ctx, s, "")
	for round := 0; err == znode.ErrExhausted; round++ {
		if again, err := l.dir.Recreate(ctx, s, false); !again {
			return nil, err
		}
		if err := s.Pause(ctx, round); err != nil {
			return nil, err
		}
		p, err = l.enter(ctx, s, "")
	}
	if err != nil {
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

// join creates a place at the end of the line, in the same transaction
// removing the place replace if that is not empty. If it fails there is no
// place, or it is being removed, and so is replace. Where the directory cannot
// count any more, it waits for another.
func (l *line) join(ctx context.Context, s *session.Session, replace string) (*place, error) {
	p, err := l.enter(ctx, s, replace)
	for round := 0; err == znode.ErrExhausted; round++ {
		if _, err = l.dir.Recreate(ctx, s, true); err != nil {
			return nil, err
		}
		if err := s.Pause(ctx, round); err != nil {
			return nil, err
		}
		p, err = l.enter(ctx, s, "")
	}
	return p, err
}

// enter is join without waiting: it fails with errSpent where the directory
// cannot count any more.
func (l *line) enter(ctx context.Context, s *session.Session, replace string) (*place, error) {
	p := &place{line: l, s: s, lease: s.Lease(), remover: uniqueName{}}
	err := p.create(ctx, replace)
	if err == nil {
		return p, nil
	}
	if err == znode.ErrExhausted {
		// While our place is there, so is the directory that it is in.
		if failed := l.dir.MarkExhausted(ctx, s); failed != nil {
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

func (p *place) create(ctx context.Context, replace string) error {
	l, s := p.line, p.s
	for round := 0; ; round++ {
		if err := s.Pause(ctx, round-1); err != nil {
			return err
		}
		touch, err := l.dir.Writable(ctx, s)
		if err != nil {
			return err
		}
		var ops []any
		if replace != "" {
			ops = append(ops, &zk.DeleteRequest{Path: replace, Version: -1})
		}
		ops = append(ops, &zk.CreateRequest{
			Path: session.Protect(znode.Join(l.dir.Path, l.name)), Data: l.data, Flags: zk.FlagEphemeralSequential,
		})
		if touch {
			ops = append(ops, &zk.SetDataRequest{Path: l.dir.Path, Data: []byte{}, Version: -1})
		}
		paths, results, err := s.MultiProtected(ctx, ops...)
		if err == nil {
			return p.created(paths[0], results, touch)
		}
		failed := session.FailedOp(results)
		switch class := session.ClassOf(err); {
		case class == session.ClassNoNode && replace != "" && failed == 0:
			return ErrRemoved
		case class == session.ClassNoNode:
			err = l.dir.Create(ctx, s)
		case class == session.ClassNoAuth && touch && failed == len(ops)-1:
			l.dir.Forbid()
			err = nil
		case class == session.ClassNodeExists:
			err = znode.ErrExhausted
		}
		if err != nil {
			return err
		}
	}
}

// created takes the path, the token and the number of children from the transaction's
// results. The results are nil if only the znode is known to exist.
func (p *place) created(path string, results []zk.MultiResponse, touched bool) error {
	p.path = path
	p.lease.Own(path)
	p.name = znode.Base(path)
	_, seq, ok := p.line.rule.parse(p.name)
	if !ok {
		return fmt.Errorf("the server named a place %q, which has no number", path)
	}
	if !znode.Countable(seq) {
		return znode.ErrExhausted
	}
	p.seq = seq
	if touched && len(results) > 0 {
		// The directory as of this very transaction: it was changed last by it,
		// and counts our znode.
		stat := results[len(results)-1].Stat
		p.token = stat.Mzxid
		p.alone = stat.NumChildren == 1
	}
	return nil
}

// A member is a place as a listing shows it.
type member struct {
	name  string
	class class
	seq   int32
}

// before says whether m is in line before n.
func (m member) before(n member) bool {
	if m.seq == n.seq {
		return m.name < n.name
	}
	return znode.Earlier(m.seq, n.seq)
}

// sort picks the places out of a listing and puts them in line.
func (r rule) sort(names []string) []member {
	var places []member
	for _, name := range names {
		if c, seq, ok := r.parse(name); ok {
			places = append(places, member{name, c, seq})
		}
	}
	slices.SortFunc(places, func(a, b member) int {
		switch {
		case a.before(b):
			return -1
		case b.before(a):
			return 1
		}
		return 0
	})
	return places
}

// A front has the places that keep a place waiting, as far as the place needs to know
// them.
type front struct {
	near, far string // the two nearest; empty where there are none
	last      bool   // near is the only one
	listed    bool   // the place itself is in the list

	frontSummary
}

// A frontSummary has the parts of a front that errors and log lines mention.
type frontSummary struct {
	count int    // the places that keep a place waiting
	first string // the first of them
	leads bool   // first is the first of the whole line, and so holds
}

// front finds the places that keep p waiting, without sorting a long line.
func (p *place) front(names iter.Seq[string]) front {
	var f front
	var near, far, first, head member
	for name := range names {
		m := member{name: name}
		var ok bool
		if m.class, m.seq, ok = p.line.rule.parse(name); !ok {
			continue
		}
		if head.name == "" || m.before(head) {
			head = m
		}
		if name == p.name {
			f.listed = true
			continue
		}
		if !znode.Earlier(m.seq, p.seq) || !p.line.rule.blocks(m.class, p.line.class) {
			continue
		}
		f.count++
		if first.name == "" || m.before(first) {
			first = m
		}
		switch {
		case near.name == "" || near.before(m):
			near, far = m, near
		case far.name == "" || far.before(m):
			far = m
		}
	}
	f.near, f.far = strings.Clone(near.name), strings.Clone(far.name)
	f.leads = f.count > 0 && first.name == head.name
	switch first.name {
	case near.name:
		f.first = f.near
	case far.name:
		f.first = f.far
	default:
		f.first = strings.Clone(first.name)
	}
	f.last = near.name != "" && far.name == ""
	return f
}
