package watch

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

var lists = &registry[[]string]{what: "children", read: readChildren}

// Children follows the names of a znode's children, sorted: the present ones,
// then those after every change. The list is nil while the znode does not exist,
// and empty while it has no children. A child that came and went between two
// reads makes an event, too, of an equal list: something did change. Changes of
// data, here or in the children, are none.
//
// The list is shared with everybody else who follows the same path, and must not
// be changed. Children does no I/O itself and returns at once. ctx ends the
// stream. An invalid path ends it before it begins, with session.ErrInvalidPath.
func Children(ctx context.Context, m *session.Manager, path string) *Stream[[]string] {
	return newStream(ctx, lists, m, path)
}

func readChildren(ctx context.Context, s *session.Session, path string) ([]string, stamp, *session.Watch, error) {
	for {
		names, stat, w, err := s.WatchChildren(ctx, path)
		if err == nil {
			return names, stamp{true, stat.Czxid, stat.Pzxid}, w, nil
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return nil, stamp{}, nil, err
		}
		w, err = awaitCreation(ctx, s, path)
		if err != nil || w != nil {
			return nil, stamp{}, w, err
		}
	}
}
