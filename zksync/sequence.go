package zksync

import (
	"math"
	"strconv"
	"strings"
)

// numberBehind is what follows the last mark in a name.
func numberBehind(name, mark string) (string, bool) {
	i := strings.LastIndex(name, mark)
	if i < 0 {
		return "", false
	}
	return name[i+len(mark):], true
}

// parseSequence finds the number that the server gave to a sequential znode:
// ten digits or more behind the last mark, with a sign once the counter has
// wrapped. It looks from the end, because a long line is a lot of names; so a mark
// must not end in a digit.
func parseSequence(name, mark string) (int32, bool) {
	i := len(name)
	for i > 0 && '0' <= name[i-1] && name[i-1] <= '9' {
		i--
	}
	if strings.HasSuffix(name[:i], mark) {
		return parseNumber(name[i:])
	}
	if i > 0 && name[i-1] == '-' && strings.HasSuffix(name[:i-1], mark) {
		return parseNumber(name[i-1:])
	}
	return 0, false
}

func parseNumber(digits string) (int32, bool) {
	if len(digits) < 10 || digits[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), err == nil
}

// countable says whether a number tells the order of arrival. The server's
// counter stops at the greatest int32: whoever comes then gets that number, or
// under load a negative one.
func countable(seq int32) bool { return seq >= 0 && seq < math.MaxInt32 }

// earlier compares sequence numbers across the wrap: the counter goes from
// 2147483647 to -2147483648, and places that far apart are never in one line.
func earlier(a, b int32) bool { return int32(uint32(a)-uint32(b)) < 0 }

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
	seq, ok := parseNumber(number[1:])
	return exclusive, seq, ok
}

// parse tells a place from everything else in its directory.
func (m marks) parse(name string) (class, int32, bool) {
	for _, mark := range m {
		if seq, ok := parseSequence(name, mark); ok {
			return exclusive, seq, true
		}
		if bare := strings.TrimPrefix(mark, "-"); strings.HasPrefix(name, bare) {
			if seq, ok := parseSequence(name, bare); ok {
				return exclusive, seq, true
			}
		}
	}
	return exclusive, 0, false
}
