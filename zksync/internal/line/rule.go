package line

import (
	"strings"

	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

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

// A Class is a kind of contender, for example a reader or a writer.
type Class uint8

const (
	// Exclusive is the class of contenders of which one holds at a time.
	Exclusive Class = iota
	// Reader and Writer are the classes of the line of an RWMutex.
	Reader
	Writer
	// Unit is the class of units of a semaphore that are held. They are not in line.
	Unit
	// Member is the class of participants that do not contend.
	Member
)

// blocks reports whether a contender of class c blocks a later contender.
func (c Class) blocks(later Class) bool { return c != Reader || later != Reader }

// overtaken reports whether a contender may appear in front of a contender of class c
// that already waits: a downgrade replaces a writer by a reader with the same number, in
// front of the writers that wait for it. Then a listing must confirm the end of a wait.
func (c Class) overtaken() bool { return c == Writer }

// together reports whether one event may grant any number of contenders of class c. Then
// an event that does not grant them yet should not wake all of them.
func (c Class) together() bool { return c == Reader }

// A Rule tells the contenders of a line from other children of its directory.
type Rule struct {
	marks  []mark
	recipe bool // contenders of the lock recipe that comes with ZooKeeper are in the line
}

// A mark is the text before the sequence number in the names of a class. It may also
// begin the name, without its dash.
type mark struct {
	text  string
	class Class
}

var (
	// LockRule is the rule of the lines of a Mutex, of a Semaphore and of LeaderSelector.
	// Curator, go-zookeeper and we write "_c_<guid>-lock-<seq>", kazoo writes
	// "<guid>__lock__<seq>". All are in the same line.
	LockRule = Rule{marks: []mark{{"-" + Curator.Lock, Exclusive}, {Kazoo.Lock, Exclusive}}, recipe: true}

	// LatchRule is the rule of LeaderLatch.
	LatchRule = Rule{marks: []mark{{"-" + Curator.Latch, Exclusive}}}

	// SharedRule is the rule of a line of readers and writers. Curator and we write
	// "_c_<guid>-__READ__<seq>", kazoo writes "<guid>__rlock__<seq>". All are in the same
	// line.
	SharedRule = Rule{marks: []mark{{Curator.Writer, Writer}, {Curator.Reader, Reader}, {Kazoo.Writer, Writer}, {Kazoo.Reader, Reader}}}
)

// Parse parses the name of a contender. ok is false for any other child.
func (r Rule) Parse(name string) (c Class, seq int32, ok bool) {
	for _, m := range r.marks {
		seq, ok := znode.ParseSequence(name, m.text)
		// A client that does not protect its creates writes neither a GUID nor a dash. Elsewhere
		// in a name the dash is needed: "my-unlock-0000000001" is no contender of a lock.
		if bare := strings.TrimPrefix(m.text, "-"); !ok && strings.HasPrefix(name, bare) {
			seq, ok = znode.ParseSequence(name, bare)
		}
		if ok {
			return m.class, seq, true
		}
	}
	if r.recipe {
		seq, ok = parseRecipe(name)
	}
	return Exclusive, seq, ok
}

// Has reports whether a name is the name of a contender.
func (r Rule) Has(name string) bool {
	_, _, ok := r.Parse(name)
	return ok
}

// parseRecipe parses the names of the lock recipe that comes with ZooKeeper:
// "x-<session>-<seq>".
func parseRecipe(name string) (seq int32, ok bool) {
	rest, ok := strings.CutPrefix(name, "x-")
	rest = strings.TrimPrefix(rest, "-") // the id of a session is negative if the id of the server is above 127
	number := strings.TrimLeft(rest, "0123456789")
	if !ok || len(number) == len(rest) || !strings.HasPrefix(number, "-") {
		return 0, false
	}
	return znode.ParseNumber(number[1:])
}
