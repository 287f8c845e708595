package session

import (
	"context"

	"github.com/go-zookeeper/zk"
)

// WatchData is Get with a Watch for a change or the removal of the znode. There
// is no Watch where there is no znode.
func (s *Session) WatchData(ctx context.Context, path string) ([]byte, *zk.Stat, *Watch, error) {
	return s.get(ctx, path, true)
}

// WatchExists is Exists with a Watch for the creation, change or removal of
// the znode.
func (s *Session) WatchExists(ctx context.Context, path string) (bool, *zk.Stat, *Watch, error) {
	return s.exists(ctx, path, true)
}

// WatchChildren is Children with a Watch for a change of the list, or the
// removal of the znode.
func (s *Session) WatchChildren(ctx context.Context, path string) ([]string, *zk.Stat, *Watch, error) {
	return s.children(ctx, path, true)
}

// GetW is Get with a channel for the next change: it delivers one event and is
// closed. ctx bounds the watch as well as the call. If ctx or the session ends
// first, the event is of type zk.EventNotWatching and its Err says why. It has a
// buffer of one; nobody needs to read it.
func (s *Session) GetW(ctx context.Context, path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	data, stat, w, err := s.get(ctx, path, true)
	if err != nil {
		return nil, nil, nil, err
	}
	return data, stat, w.follow(ctx), nil
}

// ExistsW is Exists with a channel as that of GetW. It also watches for the
// creation of a znode that does not exist.
func (s *Session) ExistsW(ctx context.Context, path string) (bool, *zk.Stat, <-chan zk.Event, error) {
	ok, stat, w, err := s.exists(ctx, path, true)
	if err != nil {
		return false, nil, nil, err
	}
	return ok, stat, w.follow(ctx), nil
}

// ChildrenW is Children with a channel as that of GetW.
func (s *Session) ChildrenW(ctx context.Context, path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	names, stat, w, err := s.children(ctx, path, true)
	if err != nil {
		return nil, nil, nil, err
	}
	return names, stat, w.follow(ctx), nil
}
