package line

import (
	"strings"

	"github.com/go-zksync/toolkit/zksync/internal/znode"
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
