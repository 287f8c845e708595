package line

import (
	"strings"

	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

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
)

// A Rule has the differences between the lines of different primitives.
type Rule struct {
	// Parse parses the name of a contender. ok is false for any other child.
	Parse func(name string) (c Class, seq int32, ok bool)
	// blocks reports whether an earlier contender of one class blocks a later contender
	// of another class.
	blocks func(theirs, ours Class) bool
	// overtaken reports whether a contender may appear in front of a contender that
	// already waits. Then a listing must confirm the end of a wait.
	overtaken func(ours Class) bool
	// together reports whether one event may grant any number of contenders. Then an
	// event that does not grant them yet should not wake all of them.
	together func(ours Class) bool
}

// exclusively returns the rule of a line whose first contender alone holds.
func exclusively(parse func(name string) (Class, int32, bool)) Rule {
	return Rule{
		Parse:     parse,
		blocks:    func(Class, Class) bool { return true },
		overtaken: func(Class) bool { return false },
		together:  func(Class) bool { return false },
	}
}

// Names are the texts before the sequence number in the names of contenders, behind a
// GUID.
type Names struct {
	Lock   string // of a lock that excludes
	Writer string // of a writer of an RWMutex
	Reader string // of a reader of an RWMutex
	Latch  string // of a candidate of an Election
}

var (
	// Curator are the names of Curator's recipes.
	Curator = Names{Lock: "lock-", Writer: "__WRIT__", Reader: "__READ__", Latch: "latch-"}
	// Kazoo are the names of kazoo's Lock, ReadLock, WriteLock and Election.
	Kazoo = Names{Lock: "__lock__", Writer: "__lock__", Reader: "__rlock__"}
)

// marks are the texts before the sequence number in the names of contenders. A mark may
// also begin the name, without its dash.
type marks []string

var (
	lockMarks  = marks{"-" + Curator.Lock, Kazoo.Lock}
	latchMarks = marks{"-" + Curator.Latch}
)

// LockRule is the rule of the lines of a Mutex, of a Semaphore and of LeaderSelector,
// LatchRule is the rule of LeaderLatch.
var LockRule, LatchRule = exclusively(parseLock), exclusively(latchMarks.parse)

// parseLock parses the names of the contenders of all exclusive locks. Curator,
// go-zookeeper and we write "_c_<guid>-lock-<seq>", kazoo writes "<guid>__lock__<seq>",
// and the lock recipe that comes with ZooKeeper writes "x-<session>-<seq>". All are in
// the same line.
func parseLock(name string) (Class, int32, bool) {
	if c, seq, ok := lockMarks.parse(name); ok {
		return c, seq, true
	}
	return parseRecipe(name)
}

func parseRecipe(name string) (Class, int32, bool) {
	rest, ok := strings.CutPrefix(name, "x-")
	rest = strings.TrimPrefix(rest, "-") // the id of a session is negative if the id of the server is above 127
	number := strings.TrimLeft(rest, "0123456789")
	if !ok || len(number) == len(rest) || !strings.HasPrefix(number, "-") {
		return Exclusive, 0, false
	}
	seq, ok := znode.ParseNumber(number[1:])
	return Exclusive, seq, ok
}

// parse parses the name of a contender. ok is false for any other child.
func (m marks) parse(name string) (Class, int32, bool) {
	for _, mark := range m {
		if seq, ok := znode.ParseSequence(name, mark); ok {
			return Exclusive, seq, true
		}
		if bare := strings.TrimPrefix(mark, "-"); strings.HasPrefix(name, bare) {
			if seq, ok := znode.ParseSequence(name, bare); ok {
				return Exclusive, seq, true
			}
		}
	}
	return Exclusive, 0, false
}

// sharedMarks are the texts before the sequence number of readers and writers. Curator
// and we write "_c_<guid>-__READ__<seq>", kazoo writes "<guid>__rlock__<seq>". All are
// in the same line.
var sharedMarks = []struct {
	mark  string
	class Class
}{{Curator.Writer, Writer}, {Curator.Reader, Reader}, {Kazoo.Writer, Writer}, {Kazoo.Reader, Reader}}

// SharedRule is the rule of a line of readers and writers.
var SharedRule = Rule{
	Parse: parseShared,
	blocks: func(theirs, ours Class) bool {
		return theirs == Writer || ours == Writer
	},
	// A downgrade replaces a writer by a reader with the same number, in front of the
	// writers that wait for it.
	overtaken: func(ours Class) bool { return ours == Writer },
	together:  func(ours Class) bool { return ours == Reader },
}

func parseShared(name string) (Class, int32, bool) {
	for _, m := range sharedMarks {
		if seq, ok := znode.ParseSequence(name, m.mark); ok {
			return m.class, seq, true
		}
	}
	return 0, 0, false
}
