package queue

import (
	"context"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

const (
	// leastTrip stands for a round trip that is too short to tell consumers apart.
	leastTrip = 200 * time.Microsecond

	// maxPause limits the pause of a consumer that was slower than others.
	maxPause = 100 * time.Millisecond

	// maxTurn limits the wait for the turn of another consumer, which needs three round trips.
	maxTurn = 200 * time.Millisecond
)

// A Config describes the queue of a Consumer.
type Config struct {
	Manager  *session.Manager
	Path     string
	Kind     Kind
	Prefetch int // the most messages that are claimed and not settled
	// Removals carries out the transactions of Take. It is closed after the Consumer.
	Removals *commit.Committer
	// MakeDir creates a directory of the queue, and the directories above it.
	MakeDir func(ctx context.Context, s *session.Session, path string) error

	maxOrderVersion int32 // see the constant
}

// child returns the path of a znode in the queue's directory, or beside the directory
// in a layout in which every child of the directory is a message.
func (c *Config) child(name string) string { return c.Kind.Child(c.Path, name) }

// dirOf returns the path of the directory of messages with a name in the queue's directory; the
// empty name stands for the queue's directory itself.
func (c *Config) dirOf(name string) string {
	if name == "" {
		return c.Path
	}
	return c.child(name)
}

// observeDelivery tells the observer of the Manager that a message was received.
func (c *Config) observeDelivery(data []byte) {
	if delivered := c.Manager.Observer().Delivered; delivered != nil {
		delivered(session.Delivered{Path: c.Path, Size: len(data)})
	}
}

// observeLength tells the observer of the Manager how long the queue is, as a listing has
// shown that was made anyway.
func (c *Config) observeLength(n int) {
	if length := c.Manager.Observer().QueueLength; length != nil {
		length(session.QueueLength{Path: c.Path, Length: n})
	}
}

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
