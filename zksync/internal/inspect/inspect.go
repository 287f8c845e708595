package inspect

import (
	"context"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/line"
	"github.com/go-zksync/toolkit/zksync/internal/rendezvous"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Participant is a contender, member or consumer, with the client library that has
// probably created its znode.
type Participant struct {
	line.Listed
	Client string // empty if any client may have created the znode
}

// A Report says which primitive uses a path, and lists its participants.
type Report struct {
	Kind         Kind
	Clients      []string // that use the path, as far as the znodes tell
	Participants []Participant
	Depth        int // the number of participants that wait, or of messages in a queue
}

// Path inspects a path, as of the time of the call.
func Path(ctx context.Context, m *session.Manager, path string) (*Report, error) {
	return znode.ReadCommitted(ctx, m, path, func(ctx context.Context, s *session.Session) (*Report, error) {
		return (&inspector{ctx: ctx, s: s, path: path}).inspect()
	})
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

func (i *inspector) inspect() (*Report, error) {
	var err error
	if i.data, i.stat, err = i.s.Get(i.ctx, i.path); err != nil {
		return nil, err
	}
	if i.names, _, err = i.s.Children(i.ctx, i.path); err != nil {
		return nil, err
	}
	found := &Report{}
	var all []line.Listed
	if found.Kind, err = i.kind(); err != nil {
		return nil, err
	}
	switch found.Kind {
	case Lock:
		all, err = line.LockRule.List(i.ctx, i.s, i.path, -1)
	case RWLock:
		all, err = line.SharedRule.List(i.ctx, i.s, i.path, -1)
	case Election:
		if znode.IsSession(i.stat.EphemeralOwner) {
			all, err = (&line.Race{Path: i.path}).List(i.ctx, i.s, -1)
		} else {
			all, err = line.LatchRule.List(i.ctx, i.s, i.path, -1)
		}
	case Semaphore:
		names := line.Curator
		if !slices.Contains(i.names, unitsDirectory) {
			names = line.Kazoo
		}
		all, err = names.ListSemaphore(i.ctx, i.s, i.path)
	case DoubleBarrier:
		all, err = i.members(i.path, i.names, rendezvous.IsParticipant)
		for n := range all {
			// Before the barrier opens, its participants wait for each other.
			all[n].Holds = slices.Contains(i.names, rendezvous.ReadyName)
		}
	case Group:
		all, err = i.members(i.path, i.names, func(string) bool { return true })
	case Queue:
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
func (r *Report) addParticipants(all []line.Listed) {
	for _, c := range all {
		p := Participant{Listed: c, Client: clientOf(r.Kind, c)}
		r.Participants = append(r.Participants, p)
		if !slices.Contains(r.Clients, p.Client) && p.Client != "" {
			r.Clients = append(r.Clients, p.Client)
		}
		if !c.Holds {
			r.Depth++
		}
	}
}

// members returns the ephemerals of a directory that is chooses by their names.
func (i *inspector) members(dir string, names []string, is func(name string) bool) ([]line.Listed, error) {
	found, err := znode.ReadAll(i.ctx, i.s, dir, chosen(names, is))
	var all []line.Listed
	for _, z := range found {
		if znode.IsSession(z.Stat.EphemeralOwner) {
			all = append(all, line.Listed{Dir: dir, Node: z, Class: line.Member, Holds: true})
		}
	}
	return all, err
}
