package zksync

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/line"
	"github.com/go-zksync/toolkit/zksync/internal/rendezvous"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Kind says which primitive uses a path.
type Kind uint8

const (
	// KindDirectory is a znode with children that no primitive has created.
	KindDirectory Kind = iota
	// KindEmpty is a directory without children: no client uses the primitive at
	// present, so its kind cannot be known.
	KindEmpty
	// KindLock is a Mutex, or an Election by LeaderSelector or kazoo, which look alike.
	KindLock
	// KindRWLock is an RWMutex.
	KindRWLock
	// KindSemaphore is a Semaphore.
	KindSemaphore
	// KindElection is an Election.
	KindElection
	// KindQueue is a Queue, a PriorityQueue or a DelayQueue.
	KindQueue
	// KindBarrier is a Barrier that is set: a persistent znode that never had children.
	KindBarrier
	// KindDoubleBarrier is a DoubleBarrier.
	KindDoubleBarrier
	// KindGroup is a Group: a directory of ephemerals.
	KindGroup
)

var kindNames = []string{"directory", "empty", "lock", "rwlock", "semaphore", "election", "queue", "barrier", "double barrier", "group"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// MarshalText returns String.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// A Participant is a Contender with the client library that has probably created its
// znode.
type Participant struct {
	Contender
	Client Client
}

// An Inspection is the result of Inspect at a path.
type Inspection struct {
	Path string
	Kind Kind
	// Clients are the client libraries that use the path, as far as the znodes tell.
	Clients []Client
	// Participants are the contenders in order, with the holders first; the members of
	// a group; the participants of a double barrier; the consumers of a queue.
	Participants []Participant
	// Depth is the number of participants that wait, or of messages in a queue.
	Depth int
}

// Holders returns the participants that hold.
func (i *Inspection) Holders() []Participant {
	return slices.DeleteFunc(slices.Clone(i.Participants), func(p Participant) bool { return !p.Holds })
}

// Inspect reports which primitive uses a path, and its participants, as of the time of
// the call. The primitive may be one of this package, of Curator, of kazoo or of
// go-zookeeper. Inspect goes by the names and the data of the znodes, so it can only
// guess: Kind and Client say how to read the results. Inspect reads every participant.
//
// Inspect fails with zk.ErrNoNode if there is no znode at path. It commits a
// transaction without effect first (see session.Session.SyncQuorum), and is repeated
// over lost connections and sessions until ctx ends.
func Inspect(ctx context.Context, m *session.Manager, path string) (*Inspection, error) {
	var found *Inspection
	err := session.CheckPath(path)
	if err == nil {
		found, err = znode.ReadCommitted(ctx, m, path, func(ctx context.Context, s *session.Session) (*Inspection, error) {
			return (&inspector{ctx: ctx, s: s, path: path}).inspect()
		})
	}
	if err != nil {
		return nil, opError("inspect", path, err)
	}
	return found, nil
}

// An inspector inspects a path under one session.
type inspector struct {
	ctx   context.Context
	s     *session.Session
	path  string
	names []string // of the children
	data  []byte
	stat  *zk.Stat
}

func (i *inspector) inspect() (*Inspection, error) {
	var err error
	if i.data, i.stat, err = i.s.Get(i.ctx, i.path); err != nil {
		return nil, err
	}
	if i.names, _, err = i.s.Children(i.ctx, i.path); err != nil {
		return nil, err
	}
	found := &Inspection{Path: i.path}
	var all []Contender
	if found.Kind, err = i.kind(); err != nil {
		return nil, err
	}
	switch found.Kind {
	case KindLock:
		all, err = converted(line.LockRule.List(i.ctx, i.s, i.path, -1))
	case KindRWLock:
		all, err = converted(line.SharedRule.List(i.ctx, i.s, i.path, -1))
	case KindElection:
		all, err = i.election()
	case KindSemaphore:
		all, err = i.semaphore()
	case KindDoubleBarrier:
		all, err = i.members(i.path, rendezvous.IsParticipant)
	case KindGroup:
		all, err = i.members(i.path, func(string) bool { return true })
	case KindQueue:
		found.Depth, err = i.messages()
		if err == nil {
			all, err = i.consumers()
		}
	}
	if err != nil {
		return nil, err
	}
	found.addParticipants(all)
	if len(found.Clients) == 0 {
		found.Clients = i.clients(found.Kind)
	}
	return found, nil
}

// addParticipants adds participants, and counts the waiting ones.
func (i *Inspection) addParticipants(all []Contender) {
	for _, c := range all {
		p := Participant{c, clientOf(i.Kind, c)}
		i.Participants = append(i.Participants, p)
		if !slices.Contains(i.Clients, p.Client) && p.Client != "" {
			i.Clients = append(i.Clients, p.Client)
		}
		if !c.Holds {
			i.Depth++
		}
	}
}

func (i *inspector) election() ([]Contender, error) {
	if !znode.IsSession(i.stat.EphemeralOwner) {
		return converted(line.LatchRule.List(i.ctx, i.s, i.path, -1))
	}
	leader := znode.Node{Name: znode.Base(i.path), Data: i.data, Stat: i.stat}
	return []Contender{contenderOf(line.Listed{Dir: znode.Dir(i.path), Node: leader, Class: line.Exclusive, Holds: true})}, nil
}

func (i *inspector) semaphore() ([]Contender, error) {
	layout := LayoutCurator
	if !slices.Contains(i.names, "leases") {
		layout = LayoutKazoo
	}
	line, units := layout.semaphore(i.path, 0)
	return converted(units.List(i.ctx, i.s, line.Path))
}

// members returns the ephemerals of a directory that is chooses by their names.
func (i *inspector) members(dir string, is func(name string) bool) ([]Contender, error) {
	names := i.names
	if dir != i.path {
		var err error
		if names, _, err = i.s.Children(i.ctx, dir); session.ClassOf(err) == session.ClassNoNode {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !is(name) })
	found, err := znode.ReadAll(i.ctx, i.s, dir, names)
	var all []Contender
	for _, z := range found {
		if !znode.IsSession(z.Stat.EphemeralOwner) {
			continue
		}
		c := contenderOf(line.Listed{Dir: dir, Node: z, Class: line.Class(ContenderMember), Holds: true})
		c.ID = z.Name
		all = append(all, c)
	}
	return all, err
}
