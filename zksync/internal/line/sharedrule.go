package line

import "github.com/go-zksync/toolkit/zksync/internal/znode"

// sharedMarks are the texts before the sequence number of readers and writers. Curator
// and we write "_c_<guid>-__READ__<seq>", kazoo writes "<guid>__rlock__<seq>". All are
// in the same line.
var sharedMarks = []struct {
	mark  string
	class Class
}{{Curator.Writer, Writer}, {Curator.Reader, Reader}, {Kazoo.Writer, Writer}, {Kazoo.Reader, Reader}}

// SharedRule is the rule of a line of readers and writers.
var SharedRule = Rule{
	Parse: parseShared,
	blocks: func(theirs, ours Class) bool {
		return theirs == Writer || ours == Writer
	},
	// A downgrade replaces a writer by a reader with the same number, in front of the
	// writers that wait for it.
	overtaken: func(ours Class) bool { return ours == Writer },
	together:  func(ours Class) bool { return ours == Reader },
}

func parseShared(name string) (Class, int32, bool) {
	for _, m := range sharedMarks {
		if seq, ok := znode.ParseSequence(name, m.mark); ok {
			return m.class, seq, true
		}
	}
	return 0, 0, false
}
