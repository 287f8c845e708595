package zksync

// A kind has the differences between queues: the names of messages, and whether they
// lie in the queue's own directory or in lanes, which are directories below it.
type kind struct {
	name string
	// parse tells the messages in a directory from everything else.
	parse func(name string) (item, bool)
	// lane tells a lane from everything else in the queue's directory, and where it
	// stands among the others; nil if there are no lanes.
	lane func(name string) (key int64, ok bool)
	// delayed says that a lane's key is a time, in milliseconds since 1970, before
	// which there is nothing in it to be had.
	delayed bool
	// beside says that claims and markers are not in the queue's directory.
	beside bool
	prefix string // of a message's name, for Put; empty if that depends
}

var (
	inOrder    = kind{name: "Queue", parse: parseItem, prefix: itemPrefix}
	likeKazoo  = kind{name: "Queue", parse: parseEntry, prefix: entryPrefix, beside: true}
	byPriority = kind{name: "PriorityQueue", parse: parseItem, lane: parsePriorityLane}
	byTime     = kind{name: "DelayQueue", parse: parseDelayed, lane: parseDelayLane, delayed: true}
)
