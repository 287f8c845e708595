package zksync

import "github.com/go-zksync/toolkit/zksync/internal/znode"

// The classes of an RWMutex's line.
const (
	reader class = iota + 1
	writer
)

// The texts before the number in the names of its places: Curator and we write
// "_c_<guid>-__READ__<seq>", kazoo "<guid>__rlock__<seq>". All count alike.
var sharedMarks = []struct {
	mark  string
	class class
}{{writeMark, writer}, {readMark, reader}, {kazooMark, writer}, {kazooReadMark, reader}}

// sharedRule is the rule of a line of readers and writers.
var sharedRule = rule{
	parse: parseShared,
	blocks: func(theirs, ours class) bool {
		return theirs == writer || ours == writer
	},
	// A writer that is made a reader leaves a reader with its own number behind,
	// in front of the writers that wait for it.
	overtaken: func(ours class) bool { return ours == writer },
	together:  func(ours class) bool { return ours == reader },
}

func parseShared(name string) (class, int32, bool) {
	for _, m := range sharedMarks {
		if seq, ok := znode.ParseSequence(name, m.mark); ok {
			return m.class, seq, true
		}
	}
	return 0, 0, false
}
