package zksync

// A queueKind has the differences between the queues: the names of messages, and whether
// the messages are in the queue's own directory or in partitions, which are directories
// below it.
type queueKind struct {
	name string
	// parse reports whether a name in a directory is the name of a message.
	parse func(name string) (queueItem, bool)
	// parsePartition reports whether a name in the queue's directory is the name of a
	// partition. Partitions are drained in the order of their keys. It is nil if the queue
	// has no partitions.
	parsePartition func(name string) (key int64, ok bool)
	// delayed says that a partition's key is a time, in milliseconds since 1970. None of
	// its messages is due before that time.
	delayed bool
	// claimsBeside says that claims and markers are not in the queue's directory.
	claimsBeside bool
	prefix       string // of the name that Put gives a message; empty if it depends on the message
}

var (
	inOrder    = queueKind{name: "Queue", parse: parseItem, prefix: itemPrefix}
	likeKazoo  = queueKind{name: "Queue", parse: parseEntry, prefix: entryPrefix, claimsBeside: true}
	byPriority = queueKind{name: "PriorityQueue", parse: parseItem, parsePartition: parsePriorityPartition}
	byTime     = queueKind{name: "DelayQueue", parse: parseDelayed, parsePartition: parseDelayPartition, delayed: true}
)
