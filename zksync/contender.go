package zksync

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksync/internal/line"
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
	Path  string // of the znode: its deletion ends the hold, or removes the contender from the line
}

// String names the contender for people: "host:4711 (session 0x100…, token 1234)".
func (c Contender) String() string {
	id := c.ID
	if id == "" {
		id = path.Base(c.Path)
	}
	return fmt.Sprintf("%s (session %#x, token %d)", id, uint64(c.Session), c.Token)
}

func contenderOf(l line.Listed) Contender {
	return Contender{
		ID: string(l.Data), Class: ContenderClass(l.Class), Session: l.Stat.EphemeralOwner, Token: l.Stat.Czxid,
		Since: sinceOf(l.Stat), Holds: l.Holds, Path: znode.Join(l.Dir, l.Name),
	}
}

// converted returns the contenders of a listing, and its error.
func converted(all []line.Listed, err error) ([]Contender, error) {
	if all == nil {
		return nil, err
	}
	found := make([]Contender, len(all))
	for i, l := range all {
		found[i] = contenderOf(l)
	}
	return found, err
}

func sinceOf(stat *zk.Stat) time.Time { return time.UnixMilli(stat.Ctime) }

// Contenders returns the holder and then the waiting contenders in order, of all
// processes and of all clients with which the Mutex excludes, as of the time of the
// call. Goroutines that share a Mutex are one contender. Contenders commits a
// transaction without effect first (see session.Session.SyncQuorum), and is repeated
// over lost connections and sessions until ctx ends.
func (m *Mutex) Contenders(ctx context.Context) ([]Contender, error) {
	if m.err != nil {
		return nil, opError("contenders", m.path, m.err)
	}
	all, err := converted(m.in.Line.Contenders(ctx))
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
	all, err := converted(s.units.Contenders(ctx))
	return all, opError("contenders", s.path, err)
}

// Contenders returns the leader and then the candidates in the order in which they will
// lead, as of the time of the call: see Mutex.Contenders. With LayoutEphemeral it
// returns the leader alone.
func (e *Election) Contenders(ctx context.Context) ([]Contender, error) {
	all, err := e.contenders(ctx, -1)
	return all, opError("contenders", e.path, err)
}
