package zksync

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/line"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Layout selects the names of the znodes, and so the other clients that see these
// znodes. A Mutex sees the contenders of all layouts of a Mutex, and an RWMutex sees the
// contenders of all layouts of an RWMutex. So both layouts may be in use on one path, and
// a fleet can change from one layout to the other step by step.
type Layout int

const (
	// LayoutCurator is the default: the names that Curator's recipes use, of which
	// its LeaderLatch for an Election.
	LayoutCurator Layout = iota

	// LayoutKazoo is the names of kazoo's Lock, ReadLock, WriteLock, Election,
	// Semaphore and Queue, for Mutex, RWMutex, Election, Semaphore and Queue. Use it
	// for a path that Python programs share if you cannot change their options. Curator
	// does not see these names, so all three clients cannot share one path.
	//
	// A Queue puts its messages with kazoo's default priority, 100, and delivers more
	// urgent messages first, as far as it knows: a message that comes while others
	// are known to wait is delivered after these.
	//
	// With LayoutKazoo, directories are ordinary znodes and not containers, because
	// kazoo fails if the server removes an empty directory.
	LayoutKazoo

	// LayoutLeaderSelector is for an Election together with Curator's LeaderSelector,
	// whose znodes have the names of a lock.
	LayoutLeaderSelector

	// LayoutEphemeral is for an Election by one ephemeral znode, as Kafka's controller
	// and many plain clients elect: the path itself is the znode of the leader, and its
	// data is the leader's id. All candidates try to create the znode, and try again
	// when it is gone.
	//
	// The candidates have no order: any candidate may be next, and one candidate may
	// wait for ever. When the znode is deleted, each candidate reads once and waits
	// for a random time before its create, so that few of the creates come too late.
	// Candidates returns the leader alone. Campaign fails with session.ErrConflict if
	// path is a persistent znode.
	//
	// A leader resigns by deleting the znode at path, at a data version that differs
	// from the version of the last other leader it has seen. So if an operator deletes
	// the znode at that very moment and a candidate that has seen the resigning leader
	// creates it again, the request deletes nothing. If the candidate has not seen the
	// resigning leader, the request may delete the candidate's znode.
	LayoutEphemeral
)

func (l Layout) String() string {
	switch l {
	case LayoutCurator:
		return "LayoutCurator"
	case LayoutKazoo:
		return "LayoutKazoo"
	case LayoutLeaderSelector:
		return "LayoutLeaderSelector"
	case LayoutEphemeral:
		return "LayoutEphemeral"
	}
	return fmt.Sprintf("Layout(%d)", int(l))
}

// layouts are the layouts that a primitive has besides the default.
var layouts = map[string][]Layout{
	"Mutex":     {LayoutKazoo},
	"RWMutex":   {LayoutKazoo},
	"Election":  {LayoutKazoo, LayoutLeaderSelector, LayoutEphemeral},
	"Semaphore": {LayoutKazoo},
	"Queue":     {LayoutKazoo},
}

// WithLayout makes the znodes of a Mutex, RWMutex, Election, Semaphore or Queue look
// like the znodes of other clients, to share a path with these clients: see Layout
// for the layouts, and docs/migrating.md for the clients that each layout is for. All
// users of an Election, a Semaphore or a Queue at a path must have the same layout.
func WithLayout(l Layout) LayoutOption {
	return option(func(c *config) error {
		if l < LayoutCurator || l > LayoutEphemeral {
			return fmt.Errorf("%w: WithLayout: there is no %v", ErrInvalidOption, l)
		}
		c.layout = l
		return nil
	})
}

// checkLayout says whether a primitive has the layout.
func (c config) checkLayout(primitive string) error {
	has := layouts[primitive]
	if c.layout == LayoutCurator || slices.Contains(has, c.layout) {
		return nil
	}
	names := []string{LayoutCurator.String()}
	for _, l := range has {
		names = append(names, l.String())
	}
	return fmt.Errorf("%w: WithLayout: %v is not for %s, which has %s", ErrInvalidOption, c.layout, primitive, strings.Join(names, ", "))
}

// names returns the names of the contenders.
func (l Layout) names() line.Names {
	if l == LayoutKazoo {
		return line.Kazoo
	}
	return line.Curator
}

// contest returns how the candidates at path come to lead.
func (l Layout) contest(m *session.Manager, path string, id []byte) contest {
	name, rule := l.names().Lock, line.LockRule
	switch l {
	case LayoutEphemeral:
		return &line.Race{Manager: m, Path: path, ID: id}
	case LayoutCurator:
		name, rule = l.names().Latch, line.LatchRule
	}
	return &line.Line{Manager: m, Dir: l.directory(path), Rule: rule, Class: line.Exclusive, Op: "campaign", Name: name, Data: id}
}

// directory returns the directory of the contenders.
func (l Layout) directory(path string) *znode.Directory {
	return &znode.Directory{Path: path, Lasting: l == LayoutKazoo}
}

// queue returns the kind of a queue with this layout.
func (l Layout) queue(k queueKind) queueKind {
	if l == LayoutKazoo && k.name == inOrder.name {
		return likeKazoo
	}
	return k
}

// semaphore returns the directories of a semaphore's line and of its leases.
// kazoo has both beside each other, takes every child of the latter for a lease, and
// keeps the size there as data.
func (l Layout) semaphore(path string, n int) (lock *znode.Directory, units line.Leases) {
	if l == LayoutKazoo {
		dir := l.directory(path)
		dir.Data = fmt.Append(nil, n)
		return l.directory(path + "-" + line.Kazoo.Lock), line.Leases{Dir: dir, IsUnit: func(string) bool { return true }}
	}
	return l.directory(znode.Join(path, "locks")), line.Leases{Dir: l.directory(znode.Join(path, "leases")), IsUnit: line.IsLease}
}
