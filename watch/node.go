package watch

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// A State is what a read has found of a znode. Data is shared with everybody
// else who follows the same path, and must not be changed.
type State struct {
	Path   string // relative to the Manager's chroot
	Exists bool
	Data   []byte  // nil or empty if there is none
	Stat   zk.Stat // zero where the znode does not exist
}

func (st *State) stamp() stamp { return stamp{st.Exists, st.Stat.Czxid, st.Stat.Mzxid} }

var nodes = &registry[State]{what: "node", read: readNode}

// Node follows a znode: its present state, then every change of its existence
// or data. A znode that does not exist is a state like any other, and creation is
// waited for. Changes of its children or ACL are none.
//
// Node does no I/O itself and returns at once. ctx ends the stream. An invalid
// path ends it before it begins, with session.ErrInvalidPath.
func Node(ctx context.Context, m *session.Manager, path string) *Stream[State] {
	return newStream(ctx, nodes, m, path)
}

func readNode(ctx context.Context, s *session.Session, path string) (State, stamp, *session.Watch, error) {
	for {
		data, stat, w, err := s.WatchData(ctx, path)
		if err == nil {
			st := State{Path: path, Exists: true, Data: data, Stat: *stat}
			return st, st.stamp(), w, nil
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return State{}, stamp{}, nil, err
		}
		w, err = awaitCreation(ctx, s, path)
		if err != nil || w != nil {
			return State{Path: path}, stamp{}, w, err
		}
	}
}

// awaitCreation returns a watch on a znode that does not exist, or nil if it
// does by now.
func awaitCreation(ctx context.Context, s *session.Session, path string) (*session.Watch, error) {
	exists, _, w, err := s.WatchExists(ctx, path)
	if err == nil && exists {
		w.Stop()
		w = nil
	}
	return w, err
}
