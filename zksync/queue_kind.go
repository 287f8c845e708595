package zksync

// A queueKind has the differences between queues: the names of messages, and whether they
// lie in the queue's own directory or in partitions, which are directories below it.
type queueKind struct {
	name string
	// parse tells the messages in a directory from everything else.
	parse func(name string) (queueItem, bool)
	// partition tells a partition from everything else in the queue's directory, and where it
	// stands among the others; nil if there are no partitions.
	parsePartition func(name string) (key int64, ok bool)
	// delayed says that a partition's key is a time, in milliseconds since 1970, before
	// which there is nothing in it to be had.
	delayed bool
	// beside says that claims and markers are not in the queue's directory.
	claimsBeside bool
	prefix       string // of a message's name, for Put; empty if that depends
}

var (
	inOrder    = queueKind{name: "Queue", parse: parseItem, prefix: itemPrefix}
	likeKazoo  = queueKind{name: "Queue", parse: parseEntry, prefix: entryPrefix, claimsBeside: true}
	byPriority = queueKind{name: "PriorityQueue", parse: parseItem, parsePartition: parsePriorityPartition}
	byTime     = queueKind{name: "DelayQueue", parse: parseDelayed, parsePartition: parseDelayPartition, delayed: true}
)
