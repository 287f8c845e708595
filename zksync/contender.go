package zksync

import (
	"cmp"
	"fmt"
	"path"
	"time"

	"github.com/go-zksync/toolkit/zksync/internal/line"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A ContenderClass says what a contender wants or holds.
type ContenderClass uint8

const (
	// ContenderExclusive is a contender for a Mutex or an Election, and a contender in
	// the line of a Semaphore.
	ContenderExclusive = ContenderClass(line.Exclusive)
	// ContenderReader is a contender for the read lock of an RWMutex.
	ContenderReader = ContenderClass(line.Reader)
	// ContenderWriter is a contender for the write lock of an RWMutex.
	ContenderWriter = ContenderClass(line.Writer)
	// ContenderUnit is one unit of a Semaphore that is held.
	ContenderUnit = ContenderClass(line.Unit)
	// ContenderMember is a member of a Group, a participant of a DoubleBarrier, or a
	// consumer of a queue, as Inspect returns them.
	ContenderMember = ContenderClass(line.Member)
)

var classNames = []string{"exclusive", "reader", "writer", "unit", "member"}

func (c ContenderClass) String() string { return nameOf(classNames, int(c), "ContenderClass") }

// MarshalText returns String.
func (c ContenderClass) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// A Contender describes a client that holds a primitive or waits for it, as the
// client's znode shows it.
type Contender struct {
	ID      string // the data of the znode: see WithID; other clients write data of their own
	Class   ContenderClass
	Session int64     // the id of the session that owns the znode
	Token   int64     // the czxid of the znode: the fencing token of a hold, unless Downgrade has made the znode
	Since   time.Time // when the znode was created, by the servers' clock
	// Holds reports whether no contender ahead blocks this contender. The contender
	// itself may not have noticed yet.
	Holds bool
	Path  string // of the znode: its deletion ends the hold, or removes the contender from the line
}

// String names the contender for people: "host:4711 (session 0x100…, token 1234)".
func (c Contender) String() string {
	return fmt.Sprintf("%s (session %#x, token %d)", cmp.Or(c.ID, path.Base(c.Path)), uint64(c.Session), c.Token)
}

func contenderOf(l line.Listed) Contender {
	id := string(l.Data)
	if l.Class == line.Member {
		id = l.Name
	}
	return Contender{
		ID: id, Class: ContenderClass(l.Class), Session: l.Stat.EphemeralOwner, Token: l.Stat.Czxid,
		Since: time.UnixMilli(l.Stat.Ctime), Holds: l.Holds, Path: znode.Join(l.Dir, l.Name),
	}
}
