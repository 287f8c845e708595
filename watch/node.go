package watch

import (
	"context"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// A State is the state of a znode at the time of a read. All streams of the same path
// share Data, so it must not be changed.
type State struct {
	Path   string // relative to the Manager's chroot
	Exists bool
	Data   []byte  // nil or empty if there is none
	Stat   zk.Stat // zero where the znode does not exist
}

func (st *State) stamp() stamp { return stamp{st.Exists, st.Stat.Czxid, st.Stat.Mzxid} }

var nodes = &registry[State]{
	kind: "node", side: dataSide,
	decode: func(d *session.Delivery, path string) (State, stamp, error) {
		st, err := decodeState(d, path)
		return st, st.stamp(), err
	},
	absent: func(path string) State { return State{Path: path} },
}

// decodeState decodes the answer to a data side.
func decodeState(d *session.Delivery, path string) (State, error) {
	data, stat, err := d.Data()
	return State{Path: path, Exists: true, Data: data, Stat: *stat}, err
}

// Node follows a znode: its present state, then every change of its existence or
// data. A znode that does not exist is a state like any other, and Node waits for
// its creation. Changes of its children or of its ACL are not reported.
//
// The stream ends with ctx, when the Manager is closed, and when the znode may not
// be read. An invalid path ends the stream before it begins, with
// session.ErrInvalidPath. Node does no I/O itself and returns at once.
//
// If the ACL of the znode is closed to this process for a time, the stream may miss
// changes until the next reconnect: see the non-guarantees of the package.
func Node(ctx context.Context, m *session.Manager, path string) *Stream[State] {
	return nodes.stream(ctx, m, path)
}

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
