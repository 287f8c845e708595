package queue

import "github.com/go-zksync/toolkit/zksync/internal/znode"

// A Kind has the differences between the queues: the names of messages, and whether
// the messages are in the queue's own directory or in partitions, which are directories
// below it.
type Kind struct {
	Name string
	// Parse reports whether a name in a directory is the name of a message.
	Parse func(name string) (Item, bool)
	// ParsePartition reports whether a name in the queue's directory is the name of a
	// partition. Partitions are drained in the order of their keys. It is nil if the queue
	// has no partitions.
	ParsePartition func(name string) (key int64, ok bool)
	// Delayed says that a partition's key is a time, in milliseconds since 1970. None of
	// its messages is due before that time.
	Delayed bool
	// ClaimsBeside says that claims and markers are not in the queue's directory.
	ClaimsBeside bool
	// anyOrder says that a new message may be ahead of a message that was put before. Then
	// no cursor tells which messages were claimed.
	anyOrder bool
	Prefix   string // of the name that Put gives a message; empty if it depends on the message
}

// Child returns the path of a znode of this package in the directory of a queue, or beside
// the directory in a layout in which every child of the directory is a message.
func (k Kind) Child(queue, name string) string {
	if k.ClaimsBeside {
		return queue + "-" + name
	}
	return znode.Join(queue, name)
}

var (
	InOrder    = Kind{Name: "Queue", Parse: parseItem, Prefix: ItemPrefix}
	LikeKazoo  = Kind{Name: "Queue", Parse: parseEntry, Prefix: entryPrefix, ClaimsBeside: true, anyOrder: true}
	ByPriority = Kind{Name: "PriorityQueue", Parse: parseItem, ParsePartition: parsePriorityPartition}
	ByTime     = Kind{Name: "DelayQueue", Parse: parseDelayed, ParsePartition: parseDelayPartition, Delayed: true, anyOrder: true}
)
