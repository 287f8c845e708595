package zksync

import (
	"strconv"
	"strings"
)

// parseSequence finds the number that the server gave to a sequential znode:
// ten digits or more behind mark, with a sign once the counter has wrapped.
func parseSequence(name, mark string) (int32, bool) {
	i := strings.LastIndex(name, mark)
	if i < 0 {
		return 0, false
	}
	digits := name[i+len(mark):]
	if len(digits) < 10 || digits[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), err == nil
}

// earlier compares sequence numbers across the wrap: the counter goes from
// 2147483647 to -2147483648, and places that far apart are never in one line.
func earlier(a, b int32) bool { return int32(uint32(a)-uint32(b)) < 0 }

// mutexLine tells the places of a mutex's line from everything else: Curator's
// and go-zookeeper's "_c_<guid>-lock-<seq>" or bare "lock-<seq>", and kazoo's
// "<guid>__lock__<seq>". All count alike.
func mutexLine(name string) (class, int32, bool) {
	for _, mark := range []string{"-lock-", "__lock__"} {
		if seq, ok := parseSequence(name, mark); ok {
			return exclusive, seq, true
		}
	}
	if strings.HasPrefix(name, "lock-") {
		seq, ok := parseSequence(name, "lock-")
		return exclusive, seq, ok
	}
	return exclusive, 0, false
}
