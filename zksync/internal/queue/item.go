package queue

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// The znodes of a queue. Messages are named and numbered as in ZooKeeper's queue
// recipe; all other znodes have names that sort after the messages, so that other
// clients, which start with the smallest name, hardly notice them.
const (
	ItemPrefix = "qn-"

	// entryPrefix begins the names of kazoo's messages, with kazoo's default
	// priority.
	entryPrefix = "entry-100-"

	claimsName  = "zksync-claims"   // has the order znode and the ledger of each consumer
	MarkersName = commit.MarkersDir // has a znode for each value that writes
	LimitName   = "zksync-limit"    // every Put of a bounded queue writes to it
	idleName    = "zksync-idle"     // has the line of idle consumers
	laterName   = commit.LaterDir   // has the messages of Retry
)

const (
	partitionWidth  = 10 * time.Second
	dueDigits       = 13 // of milliseconds
	partitionDigits = 10 // of seconds
	priorityDigits  = 3  // of kazoo
	MaxDueMillis    = 9_999_999_999_999

	// MaxPriority is the least urgent priority of a PriorityQueue.
	MaxPriority = 255
)

// An Item is the name of a message in its directory.
type Item struct {
	Name string
	Due  int64 // of a delayed message, in milliseconds since 1970; of kazoo's message, the priority; else 0: then it is always due
	Seq  int32

	deliveries int // of a message of Retry, before the Retry
}

// parseItem parses the name of a message of a Queue or a PriorityQueue. It reports false
// for any other name.
func parseItem(name string) (Item, bool) {
	digits, ok := strings.CutPrefix(name, ItemPrefix)
	seq, ok2 := znode.ParseNumber(digits)
	return Item{Name: name, Seq: seq}, ok && ok2
}

// parseRanked parses the name of a message that has a due time or a priority, of some digits,
// before its number. It reports false for any other name.
func parseRanked(name, prefix string, digits int) (Item, bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok || len(rest) < digits+1 || rest[digits] != '-' {
		return Item{}, false
	}
	rank, ok := parseDigits(rest[:digits])
	seq, ok2 := znode.ParseNumber(rest[digits+1:])
	return Item{Name: name, Due: rank, Seq: seq}, ok && ok2
}

// parseDelayed parses the name of a message of a DelayQueue.
func parseDelayed(name string) (Item, bool) { return parseRanked(name, ItemPrefix, dueDigits) }

// parseEntry parses the name of a message of kazoo's Queue, which has the priority of the
// message. More urgent messages have smaller numbers.
func parseEntry(name string) (Item, bool) { return parseRanked(name, "entry-", priorityDigits) }

// parseLater parses the name of a message that Retry has put: its due time, the number of
// its deliveries so far, and a number.
func parseLater(name string) (Item, bool) {
	due, rest, ok := strings.Cut(name, "-")
	times, number, ok2 := strings.Cut(rest, "-")
	if !ok || !ok2 {
		return Item{}, false
	}
	at, ok := parseDigits(due)
	n, ok2 := parseDigits(times)
	seq, ok3 := znode.ParseNumber(number)
	return Item{Name: name, Due: at, Seq: seq, deliveries: int(n)}, ok && ok2 && ok3
}

// numberOfLater returns the sequence number in the name of a message of Retry.
func numberOfLater(name string) (seq int32, ok bool) {
	it, ok := parseLater(name)
	return it.Seq, ok
}

// laterPrefix returns the prefix of the name of a message of Retry.
func laterPrefix(due int64, deliveries int) string {
	return fmt.Sprintf("%0*d-%d-", dueDigits, due, deliveries)
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
func compareItems(a, b Item) int {
	if c := cmp.Compare(a.Due, b.Due); c != 0 || a.Seq == b.Seq {
		return c
	}
	if znode.Earlier(a.Seq, b.Seq) {
		return -1
	}
	return 1
}

// ItemsOf returns the messages among names, in order.
func ItemsOf(names []string, parse func(string) (Item, bool)) []Item {
	items := make([]Item, 0, len(names))
	for _, name := range names {
		if it, ok := parse(name); ok {
			items = append(items, it)
		}
	}
	slices.SortFunc(items, compareItems)
	return items
}

// DelayedPrefix returns the prefix of the name of a message that is due at a time.
func DelayedPrefix(due int64) string {
	return fmt.Sprintf("%s%0*d-", ItemPrefix, dueDigits, due)
}

// PriorityPartition returns the name of the directory of a priority.
func PriorityPartition(priority int) string { return fmt.Sprintf("p-%03d", priority) }

func parsePriorityPartition(name string) (priority int64, ok bool) {
	digits, ok := strings.CutPrefix(name, "p-")
	n, ok2 := parseDigits(digits)
	return n, ok && ok2 && len(digits) == 3 && n <= MaxPriority
}

// DelayPartition returns the directory of a message that is due at a time, in milliseconds
// since 1970. The directory has all messages that are due in the same span of
// partitionWidth.
func DelayPartition(due int64) string {
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

// IsPartition reports whether a name in the queue's directory is the name of a partition of any kind.
func IsPartition(name string) bool {
	_, byPriority := parsePriorityPartition(name)
	_, byTime := parseDelayPartition(name)
	return byPriority || byTime
}

// A message identifies a message of a directory.
type message struct {
	czxid    int64 // of the directory
	anyOrder bool  // see Kind
	Item
}

func (m message) key() claimKey { return claimKey{m.czxid, m.Name} }

// byCursor reports whether the cursor of the directory tells if the message is claimed.
func (m message) byCursor() bool {
	return !m.anyOrder && !m.mayRepeat()
}

// mayRepeat reports whether a later message of the directory may have the same name. When the
// counter of a directory is spent, each further request that creates messages begins with the
// last number again, and the numbers of later messages in the request wrap.
func (m message) mayRepeat() bool { return m.Seq == math.MaxInt32 || m.Seq < 0 }
