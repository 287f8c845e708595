package zksync

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A ContenderClass says what a contender wants or holds.
type ContenderClass uint8

const (
	// ContenderExclusive is a contender for a Mutex or an Election, and a contender in
	// the line of a Semaphore.
	ContenderExclusive ContenderClass = iota
	// ContenderReader is a contender for the read lock of an RWMutex.
	ContenderReader
	// ContenderWriter is a contender for the write lock of an RWMutex.
	ContenderWriter
	// ContenderUnit is one unit of a Semaphore that is held.
	ContenderUnit
	// ContenderMember is a member of a Group, a participant of a DoubleBarrier, or a
	// consumer of a queue, as Inspect returns them.
	ContenderMember
)

func (c ContenderClass) String() string {
	switch c {
	case ContenderExclusive:
		return "exclusive"
	case ContenderReader:
		return "reader"
	case ContenderWriter:
		return "writer"
	case ContenderUnit:
		return "unit"
	case ContenderMember:
		return "member"
	}
	return fmt.Sprintf("ContenderClass(%d)", uint8(c))
}

// MarshalText returns String.
func (c ContenderClass) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// A Contender describes a client that holds a primitive or waits for it, as the
// client's znode shows it.
type Contender struct {
	ID      string // the data of the znode: see WithID; other clients write data of their own
	Class   ContenderClass
	Session int64     // the id of the session that owns the znode
	Token   int64     // the czxid of the znode, which is the fencing token of a hold
	Since   time.Time // when the znode was created, by the servers' clock
	// Holds reports whether no contender ahead blocks this contender. The contender
	// itself may not have noticed yet.
	Holds bool
	Path  string // of the znode: to delete the znode is to take away the hold, or the position in line
}

// String names the contender for people: "host:4711 (session 0x100…, token 1234)".
func (c Contender) String() string {
	id := c.ID
	if id == "" {
		id = path.Base(c.Path)
	}
	return fmt.Sprintf("%s (session %#x, token %d)", id, uint64(c.Session), c.Token)
}

func contender(dir string, class class, z znode.Node) Contender {
	return Contender{
		ID: string(z.Data), Class: ContenderClass(class), Session: z.Stat.EphemeralOwner, Token: z.Stat.Czxid,
		Since: sinceOf(z.Stat), Path: znode.Join(dir, z.Name),
	}
}

func sinceOf(stat *zk.Stat) time.Time { return time.UnixMilli(stat.Ctime) }

// contenders returns the first n contenders in the line at dir, or all if n is
// negative, in order.
func (r rule) contenders(ctx context.Context, s *session.Session, dir string, n int) ([]Contender, error) {
	for round := 0; ; round++ {
		if err := s.Pause(ctx, round-1); err != nil {
			return nil, err
		}
		names, _, err := s.Children(ctx, dir)
		if session.ClassOf(err) == session.ClassNoNode {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		line := r.sort(names)
		if n >= 0 && len(line) > n {
			line = line[:n]
		}
		names = names[:0]
		for _, m := range line {
			names = append(names, m.name)
		}
		found, err := znode.ReadAll(ctx, s, dir, names)
		if err != nil {
			return nil, err
		}
		if len(found) < len(line) {
			continue // a contender has left since the listing
		}
		all := make([]Contender, len(found))
		var ahead [ContenderUnit]bool // the classes of the contenders ahead
		for i, z := range found {
			all[i] = contender(dir, line[i].class, z)
			all[i].Holds = true
			for theirs, present := range ahead {
				if present && r.blocks(class(theirs), line[i].class) {
					all[i].Holds = false
				}
			}
			ahead[line[i].class] = true
		}
		return all, nil
	}
}

// contenders returns the contenders in the line, in order, as of the time of the call.
func (l *line) contenders(ctx context.Context) ([]Contender, error) {
	var all []Contender
	err := l.m.Do(ctx, func(ctx context.Context, s *session.Session) error {
		err := s.SyncQuorum(ctx, l.dir.Path)
		if err == nil {
			all, err = l.rule.contenders(ctx, s, l.dir.Path, -1)
		}
		return err
	})
	return all, err
}

// Contenders returns the holder and then the waiting contenders in order, of all
// processes and of all clients with which the Mutex excludes, as of the time of the
// call. Goroutines that share a Mutex are one contender. Contenders commits a
// transaction without effect first (see session.Session.SyncQuorum), and is repeated
// over lost connections and sessions until ctx ends.
func (m *Mutex) Contenders(ctx context.Context) ([]Contender, error) {
	if m.err != nil {
		return nil, opError("contenders", m.path, m.err)
	}
	all, err := m.in.line.contenders(ctx)
	return all, opError("contenders", m.path, err)
}

// Contenders returns the readers and writers in line, in order, as of the time of the
// call: see Mutex.Contenders. Goroutines of one process that read together are one
// contender.
func (rw *RWMutex) Contenders(ctx context.Context) ([]Contender, error) {
	return rw.w.Contenders(ctx)
}

// Contenders returns a Contender for each unit that is held, in the order of
// acquisition, and then the contenders that wait in line, as of the time of the call:
// see Mutex.Contenders. A contender in line does not say how many units it waits for.
func (s *Semaphore) Contenders(ctx context.Context) ([]Contender, error) {
	if s.err != nil {
		return nil, opError("contenders", s.path, s.err)
	}
	var all []Contender
	err := s.size.m.Do(ctx, func(ctx context.Context, ss *session.Session) error {
		err := ss.SyncQuorum(ctx, s.path)
		if err == nil {
			all, err = semaphoreContenders(ctx, ss, s.in.line.dir.Path, s.units)
		}
		return err
	})
	return all, opError("contenders", s.path, err)
}

// semaphoreContenders returns the units that are held and the line of a semaphore.
func semaphoreContenders(ctx context.Context, s *session.Session, line string, units leases) ([]Contender, error) {
	waiting, err := exclusively(parseLock).contenders(ctx, s, line, -1)
	if err != nil {
		return nil, err
	}
	for i := range waiting {
		waiting[i].Holds = false // the first in line waits for units
	}
	names, _, err := s.Children(ctx, units.dir.Path)
	if session.ClassOf(err) == session.ClassNoNode {
		return waiting, nil
	}
	if err != nil {
		return nil, err
	}
	held, err := units.contenders(ctx, s, names)
	return append(held, waiting...), err
}

// contenders returns the units that are held, among the names of a listing.
func (l leases) contenders(ctx context.Context, s *session.Session, names []string) ([]Contender, error) {
	names = slices.DeleteFunc(names, func(name string) bool { return !l.is(name) })
	found, err := znode.ReadAll(ctx, s, l.dir.Path, names)
	var all []Contender
	for _, z := range found {
		c := contender(l.dir.Path, class(ContenderUnit), z)
		c.Holds = true
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Contender) int {
		return cmp.Or(cmp.Compare(a.Token, b.Token), cmp.Compare(a.Path, b.Path))
	})
	return all, err
}

// Contenders returns the leader and then the candidates in the order in which they will
// lead, as of the time of the call: see Mutex.Contenders. With LayoutEphemeral it
// returns the leader alone.
func (e *Election) Contenders(ctx context.Context) ([]Contender, error) {
	all, err := e.contenders(ctx, -1)
	return all, opError("contenders", e.path, err)
}
