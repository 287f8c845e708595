package zksync

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/line"
	engine "github.com/go-zksync/toolkit/zksync/internal/queue"
)

// A Layout selects the names of the znodes, and so the other clients that see these
// znodes. A Mutex sees the contenders of all layouts of a Mutex, and an RWMutex sees the
// contenders of all layouts of an RWMutex. So both layouts may be in use on one path, and
// a fleet can change from one layout to the other step by step.
type Layout int

const (
	// LayoutCurator is the default: the names that Curator's recipes use, and for an
	// Election the names of its LeaderLatch.
	LayoutCurator Layout = iota

	// LayoutKazoo is the names of kazoo's Lock, ReadLock, WriteLock, Election,
	// Semaphore and Queue. Use it for a path that Python programs share if you cannot
	// change their options. Curator does not see these names, so all three clients cannot
	// share one path. Directories are ordinary znodes and not containers.
	//
	// A Queue puts its messages with kazoo's default priority, 100, and delivers more
	// urgent messages first. A more urgent message that arrives while a consumer knows of
	// waiting messages may come after them.
	LayoutKazoo

	// LayoutLeaderSelector is for an Election together with Curator's LeaderSelector,
	// whose znodes have the names of a lock.
	LayoutLeaderSelector

	// LayoutEphemeral is for an Election by one ephemeral znode, as Kafka's controller
	// and many plain clients elect: the path itself is the znode of the leader, and its
	// data is the leader's id. All candidates try to create the znode, and try again
	// when it is gone.
	//
	// The candidates have no order, and one candidate may wait for ever. Campaign fails
	// with session.ErrConflict if path is a persistent znode. If an operator deletes the znode at the moment when its leader
	// resigns, the resignation may delete the znode of the next leader, and that leader
	// loses leadership.
	//
	// The candidates need the permission READ. If the answer to the creation of the leader's znode is lost, and the
	// candidate may not read the znode, or another client writes to it at once, the candidate cannot know the znode: Campaign
	// fails or waits, and nobody leads, until the znode is deleted or the session of the candidate has ended. Servers before
	// 3.8.4 show enough of the znode to every client. A leader whose znode was removed after its ACL had been closed goes on
	// to lead if it may not read the znode of the next leader.
	LayoutEphemeral
)

var layoutNames = []string{"LayoutCurator", "LayoutKazoo", "LayoutLeaderSelector", "LayoutEphemeral"}

func (l Layout) String() string { return nameOf(layoutNames, int(l), "Layout") }

// nameOf returns the name of the constant with a value.
func nameOf(names []string, value int, typ string) string {
	if value >= 0 && value < len(names) {
		return names[value]
	}
	return fmt.Sprintf("%s(%d)", typ, value)
}

// layouts are the layouts that a primitive has besides the default.
var layouts = map[string][]Layout{
	"Mutex":     {LayoutKazoo},
	"RWMutex":   {LayoutKazoo},
	"Election":  {LayoutKazoo, LayoutLeaderSelector, LayoutEphemeral},
	"Semaphore": {LayoutKazoo},
	"Queue":     {LayoutKazoo},
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
func (l Layout) contest(m *session.Manager, path string, id []byte) line.Contest {
	name, rule := l.names().Lock, line.LockRule
	switch l {
	case LayoutEphemeral:
		return &line.Race{Manager: m, Path: path, ID: id}
	case LayoutCurator:
		name, rule = l.names().Latch, line.LatchRule
	}
	return &line.Line{Manager: m, Dir: l.names().Directory(path), Rule: rule, Class: line.Exclusive, Op: "campaign", Name: name, Data: id, Standby: true}
}

// queue returns the kind of a queue with this layout.
func (l Layout) queue(k engine.Kind) engine.Kind {
	if l == LayoutKazoo && k.Name == engine.InOrder.Name {
		return engine.LikeKazoo
	}
	return k
}
