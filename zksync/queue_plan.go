package zksync

// A plan says where the messages of a queue are.
type plan struct {
	kind string
	// item tells the messages in a directory from everything else.
	item func(name string) (item, bool)
	// lane tells the directories that messages are in from everything else, and in
	// which order they are drained; nil if the queue's own directory is the only one.
	// Those of a DelayQueue begin at the time that is their key, in milliseconds
	// since 1970.
	lane func(name string) (key int64, ok bool)
	// delayed says that messages have a time before which they don't count.
	delayed bool
}
