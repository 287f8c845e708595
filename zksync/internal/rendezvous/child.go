package rendezvous

import (
	"strings"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

const (
	// ReadyName is the name of the znode that exists while a barrier is open.
	ReadyName = "ready"
	// IDPrefix begins the name of a child whose participant has an id.
	IDPrefix = "member-"
)

// A child is the znode of a participant. The mark is its data, which identifies the znode
// after a lost answer, regardless of the name.
type child struct {
	path  string // empty if the participant has no child
	mark  string
	czxid int64
}

func (b *Barrier) newChild() child {
	mark := session.Protect("/")[1:]
	// Without a GUID in the name, the server refuses a second participant of the same id.
	if b.id != "" {
		return child{path: znode.Join(b.path, IDPrefix+b.id), mark: mark}
	}
	return child{path: znode.Join(b.path, mark), mark: mark}
}

// IsParticipant reports whether a name is the name of a participant's child. The names
// of this package contain a GUID or an id, the names of Curator are UUIDs, and the
// names of kazoo are UUIDs without dashes.
func IsParticipant(name string) bool {
	if guid, ok := strings.CutPrefix(name, znode.ProtectedPrefix); ok {
		return znode.IsUUID(strings.TrimSuffix(guid, "-"))
	}
	return strings.HasPrefix(name, IDPrefix) || znode.IsUUID(name)
}
