package zksync

import (
	"strings"

	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// marks are what stands before the number in the names of a line's places,
// each of which may also begin the name.
type marks []string

var (
	mutexMarks    = marks{"-" + mutexName, kazooMark}
	electionMarks = marks{"-" + electionName}
)

// parseLock tells the places of all locks that exclude. Curator, go-zookeeper and
// ourselves write "_c_<guid>-lock-<seq>", kazoo "<guid>__lock__<seq>", and the lock
// recipe that comes with ZooKeeper "x-<session>-<seq>". All count alike.
func parseLock(name string) (class, int32, bool) {
	if c, seq, ok := mutexMarks.parse(name); ok {
		return c, seq, true
	}
	return parseRecipe(name)
}

func parseRecipe(name string) (class, int32, bool) {
	rest, ok := strings.CutPrefix(name, "x-")
	rest = strings.TrimPrefix(rest, "-") // the id of a session has a sign where the server's is great
	number := strings.TrimLeft(rest, "0123456789")
	if !ok || len(number) == len(rest) || !strings.HasPrefix(number, "-") {
		return exclusive, 0, false
	}
	seq, ok := znode.ParseNumber(number[1:])
	return exclusive, seq, ok
}

// parse tells a place from everything else in its directory.
func (m marks) parse(name string) (class, int32, bool) {
	for _, mark := range m {
		if seq, ok := znode.ParseSequence(name, mark); ok {
			return exclusive, seq, true
		}
		if bare := strings.TrimPrefix(mark, "-"); strings.HasPrefix(name, bare) {
			if seq, ok := znode.ParseSequence(name, bare); ok {
				return exclusive, seq, true
			}
		}
	}
	return exclusive, 0, false
}
