package watch

import (
	"context"
	"slices"

	"github.com/go-zksync/toolkit/session"
)

var lists = &registry[[]string]{
	kind: "children", side: listSide,
	decode: func(d *session.Delivery, _ string) ([]string, stamp, error) {
		seq, stat, err := d.Names()
		names := slices.AppendSeq([]string{}, seq)
		slices.Sort(names)
		return names, stamp{true, stat.Czxid, stat.Pzxid}, err
	},
	absent: func(string) []string { return nil },
}

// Children follows the names of a znode's children, sorted: the present names,
// then the names after every change. The list is nil while the znode does not
// exist, and empty while it has no children. A child that was created and deleted
// again between two reads causes an event with an equal list, because something
// did change. Changes of data, of the znode or of its children, are not reported.
//
// All streams of the same path share the list, so it must not be changed. The stream
// ends as a stream of Node does, and has the same limit where the znode's ACL is
// closed for a time.
func Children(ctx context.Context, m *session.Manager, path string) *Stream[[]string] {
	return lists.stream(ctx, m, path)
}
