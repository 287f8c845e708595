package line

import "github.com/go-zksync/toolkit/zksync/internal/znode"

// Names are the texts before the sequence number in the names of contenders, behind a
// GUID.
type Names struct {
	Lock   string // of a lock that excludes
	Writer string // of a writer of an RWMutex
	Reader string // of a reader of an RWMutex
	Latch  string // of a candidate of an Election

	lasting bool // directories stay when they are empty
}

var (
	// Curator are the names of Curator's recipes.
	Curator = Names{Lock: "lock-", Writer: "__WRIT__", Reader: "__READ__", Latch: "latch-"}
	// Kazoo are the names of kazoo's Lock, ReadLock, WriteLock and Election. kazoo fails if
	// the server removes an empty directory.
	Kazoo = Names{Lock: "__lock__", Writer: "__lock__", Reader: "__rlock__", lasting: true}
)

// Directory returns the directory of contenders at path.
func (n Names) Directory(path string) *znode.Directory {
	return &znode.Directory{Path: path, Lasting: n.lasting}
}
