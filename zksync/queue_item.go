package zksync

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// The znodes of a queue. Messages are named and numbered as in ZooKeeper's queue
// recipe; all other znodes have names that sort after the messages, so that other
// clients, which start with the smallest name, hardly notice them.
const (
	itemPrefix = "qn-"

	// entryPrefix begins the names of kazoo's messages, with kazoo's default
	// priority.
	entryPrefix = "entry-100-"

	claimsName    = "zksync-claims"    // has an ephemeral for each claimed message, of the same name
	markersName   = "zksync-markers"   // has a znode for each value that writes
	consumersName = "zksync-consumers" // has an ephemeral for each value that consumes
	limitName     = "zksync-limit"     // every Put of a bounded queue writes to it
)

const (
	partitionWidth  = 10 * time.Second
	dueDigits       = 13 // of milliseconds
	partitionDigits = 10 // of seconds
	priorityDigits  = 3  // of kazoo
	maxDueMillis    = 9_999_999_999_999

	// MaxPriority is the least urgent priority of a PriorityQueue.
	MaxPriority = 255
)

// A queueItem is the name of a message in its directory.
type queueItem struct {
	name string
	due  int64 // of a delayed message, in milliseconds since 1970; of kazoo's message, the priority; else 0
	seq  int32
}

// parseItem parses the name of a message of a Queue or a PriorityQueue. It reports false
// for any other name.
func parseItem(name string) (queueItem, bool) {
	digits, ok := strings.CutPrefix(name, itemPrefix)
	if !ok || strings.HasPrefix(digits, "+") || len(digits) < 10 {
		return queueItem{}, false
	}
	seq, err := strconv.ParseInt(digits, 10, 32)
	return queueItem{name: name, seq: int32(seq)}, err == nil
}

// parseDelayed is parseItem for a DelayQueue.
func parseDelayed(name string) (queueItem, bool) {
	rest, ok := strings.CutPrefix(name, itemPrefix)
	if !ok || len(rest) < dueDigits+1 || rest[dueDigits] != '-' {
		return queueItem{}, false
	}
	due, ok := parseDigits(rest[:dueDigits])
	seq, ok2 := parseItem(itemPrefix + rest[dueDigits+1:])
	return queueItem{name: name, due: due, seq: seq.seq}, ok && ok2
}

// parseEntry parses the name of a message of kazoo's Queue, which has the priority of the
// message. More urgent messages have smaller numbers.
func parseEntry(name string) (queueItem, bool) {
	rest, ok := strings.CutPrefix(name, "entry-")
	if !ok || len(rest) < priorityDigits+1 || rest[priorityDigits] != '-' {
		return queueItem{}, false
	}
	priority, ok := parseDigits(rest[:priorityDigits])
	seq, ok2 := znode.ParseNumber(rest[priorityDigits+1:])
	return queueItem{name: name, due: priority, seq: seq}, ok && ok2
}

func parseDigits(s string) (int64, bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// compareItems compares messages of one directory by their due times, and messages of the
// same due time by their numbers. The numbers may have wrapped.
func compareItems(a, b queueItem) int {
	if c := cmp.Compare(a.due, b.due); c != 0 || a.seq == b.seq {
		return c
	}
	if znode.Earlier(a.seq, b.seq) {
		return -1
	}
	return 1
}

// itemsOf returns the messages among names, in order.
func itemsOf(names []string, parse func(string) (queueItem, bool)) []queueItem {
	items := make([]queueItem, 0, len(names))
	for _, name := range names {
		if it, ok := parse(name); ok {
			items = append(items, it)
		}
	}
	slices.SortFunc(items, compareItems)
	return items
}

// delayedPrefix returns the prefix of the name of a message that is due at a time.
func delayedPrefix(due int64) string {
	return fmt.Sprintf("%s%0*d-", itemPrefix, dueDigits, due)
}

// priorityPartition returns the name of the directory of a priority.
func priorityPartition(priority int) string { return fmt.Sprintf("p-%03d", priority) }

func parsePriorityPartition(name string) (priority int64, ok bool) {
	digits, ok := strings.CutPrefix(name, "p-")
	n, ok2 := parseDigits(digits)
	return n, ok && ok2 && len(digits) == 3 && n <= MaxPriority
}

// delayPartition returns the directory of a message that is due at a time, in milliseconds
// since 1970. The directory has all messages that are due in the same span of
// partitionWidth.
func delayPartition(due int64) string {
	width := partitionWidth.Milliseconds()
	return fmt.Sprintf("t-%0*d", partitionDigits, due/width*width/1000)
}

// parseDelayPartition returns when the first message in a partition may be due, in
// milliseconds since 1970.
func parseDelayPartition(name string) (start int64, ok bool) {
	digits, ok := strings.CutPrefix(name, "t-")
	n, ok2 := parseDigits(digits)
	return n * 1000, ok && ok2 && len(digits) == partitionDigits
}
