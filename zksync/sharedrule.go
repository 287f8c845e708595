package zksync

// The classes of an RWMutex's line, and what stands before the number in the
// names of its places: "_c_<guid>-__READ__<seq>" and "_c_<guid>-__WRIT__<seq>".
const (
	reader class = iota + 1
	writer

	readMark  = "__READ__"
	writeMark = "__WRIT__"
)

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
	if seq, ok := parseSequence(name, writeMark); ok {
		return writer, seq, true
	}
	seq, ok := parseSequence(name, readMark)
	return reader, seq, ok
}
