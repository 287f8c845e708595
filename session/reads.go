package session

import (
	"context"
	"iter"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// read sends a read, over lost connections, and opens the answer. With a watch
// it returns one that was armed by this very read, unless the server armed none.
func read(ctx context.Context, s *Session, op int32, path string, watched bool) (*wire.Call, *Watch, error) {
	if err := checkPath(path, false); err != nil {
		return nil, nil, opError(wire.OpName(op), path, err)
	}
	r := s.m.records.read(op, path, watched)
	var w *Watch
	if watched {
		key := watchKey{r.Path, dataWatch}
		if op == wire.OpGetChildren2 {
			key.kind = childWatch
		}
		e := s.hub.pin(key)
		defer s.hub.unpin(e)
		r.Answered = func(c *wire.Call) {
			if c.Code == 0 || c.Code == codeNoNode && op == wire.OpExists {
				w = s.hub.subscribe(key, c.Conn, c.Code != 0)
			}
		}
		r.Late = func(*wire.Call) {
			if w != nil {
				w.Stop()
			}
		}
	}
	c, _, err := s.requests.repeat(ctx, r)
	if err != nil {
		return nil, nil, opError(wire.OpName(op), path, err)
	}
	if err := s.m.failure(c); err != nil && !(op == wire.OpExists && c.Code == codeNoNode) {
		return nil, nil, opError(wire.OpName(op), path, err)
	}
	return c, w, nil
}

func get(ctx context.Context, s *Session, path string, watched bool) ([]byte, *zk.Stat, *Watch, error) {
	c, w, err := read(ctx, s, wire.OpGetData, path, watched)
	if err != nil {
		return nil, nil, nil, err
	}
	d := wire.Decoder{B: c.Body}
	data, stat := d.Buffer(), d.Stat()
	return data, stat, w, decoded(&d, "get", path, w)
}

func exists(ctx context.Context, s *Session, path string, watched bool) (bool, *zk.Stat, *Watch, error) {
	c, w, err := read(ctx, s, wire.OpExists, path, watched)
	if err != nil {
		return false, nil, nil, err
	}
	if c.Code == codeNoNode {
		return false, nil, w, nil
	}
	d := wire.Decoder{B: c.Body}
	stat := d.Stat()
	return true, stat, w, decoded(&d, "exists", path, w)
}

// ChildNames is Children for who looks through a long list once: the names come
// in the server's order, which is none, and are parts of one string that holds them
// all, so that strings.Clone is for those to be kept.
func (s *Session) ChildNames(ctx context.Context, path string) (iter.Seq[string], *zk.Stat, error) {
	c, _, err := read(ctx, s, wire.OpGetChildren2, path, false)
	if err != nil {
		return nil, nil, err
	}
	d := wire.Decoder{B: c.Body}
	names, stat := d.List(), d.Stat()
	if err := decoded(&d, "children", path, nil); err != nil {
		return nil, nil, err
	}
	return names, stat, nil
}

func children(ctx context.Context, s *Session, path string, watched bool) ([]string, *zk.Stat, *Watch, error) {
	c, w, err := read(ctx, s, wire.OpGetChildren2, path, watched)
	if err != nil {
		return nil, nil, nil, err
	}
	d := wire.Decoder{B: c.Body}
	names, stat := d.Strings(), d.Stat()
	slices.Sort(names)
	return names, stat, w, decoded(&d, "children", path, w)
}

func decoded(d *wire.Decoder, op, path string, w *Watch) error {
	if !d.Bad {
		return nil
	}
	if w != nil {
		w.Stop()
	}
	return opError(op, path, wire.ErrMalformed)
}

// Get returns the data of a znode and its Stat. Like every read it is repeated
// over lost connections.
func (s *Session) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	data, stat, _, err := get(ctx, s, path, false)
	return data, stat, err
}

// Exists tells whether there is a znode, and its Stat if there is.
func (s *Session) Exists(ctx context.Context, path string) (bool, *zk.Stat, error) {
	ok, stat, _, err := exists(ctx, s, path, false)
	return ok, stat, err
}

// Children returns the names of a znode's children, sorted, and its Stat. Names of a
// list above 64 KiB share strings of about 4 KiB: strings.Clone a name to keep it for
// long.
func (s *Session) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	names, stat, _, err := children(ctx, s, path, false)
	return names, stat, err
}

// WatchData is Get with a Watch for a change or the removal of the znode. There
// is no Watch where there is no znode.
func (s *Session) WatchData(ctx context.Context, path string) ([]byte, *zk.Stat, *Watch, error) {
	return get(ctx, s, path, true)
}

// WatchExists is Exists with a Watch for the creation, change or removal of
// the znode.
func (s *Session) WatchExists(ctx context.Context, path string) (bool, *zk.Stat, *Watch, error) {
	return exists(ctx, s, path, true)
}

// WatchChildren is Children with a Watch for a change of the list, or the
// removal of the znode.
func (s *Session) WatchChildren(ctx context.Context, path string) ([]string, *zk.Stat, *Watch, error) {
	return children(ctx, s, path, true)
}

// GetW is Get with a channel for the next change: it delivers one event and is
// closed. ctx bounds the watch as well as the call. If ctx or the session ends
// first, the event is of type zk.EventNotWatching and its Err says why. It has a
// buffer of one; nobody needs to read it.
func (s *Session) GetW(ctx context.Context, path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	data, stat, w, err := get(ctx, s, path, true)
	if err != nil {
		return nil, nil, nil, err
	}
	return data, stat, w.follow(ctx), nil
}

// ExistsW is Exists with a channel as that of GetW. It also watches for the
// creation of a znode that does not exist.
func (s *Session) ExistsW(ctx context.Context, path string) (bool, *zk.Stat, <-chan zk.Event, error) {
	ok, stat, w, err := exists(ctx, s, path, true)
	if err != nil {
		return false, nil, nil, err
	}
	return ok, stat, w.follow(ctx), nil
}

// ChildrenW is Children with a channel as that of GetW.
func (s *Session) ChildrenW(ctx context.Context, path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	names, stat, w, err := children(ctx, s, path, true)
	if err != nil {
		return nil, nil, nil, err
	}
	return names, stat, w.follow(ctx), nil
}
