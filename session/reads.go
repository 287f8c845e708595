package session

import (
	"context"
	"iter"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// read sends a read, repeats it over lost connections, and calls decode with the answer
// if the znode exists. If watched is set, it returns the Watch that this very read armed,
// or nil if the server armed none.
func read(ctx context.Context, s *Session, op int32, path string, watched bool, decode func(*wire.Decoder)) (*Watch, error) {
	r := s.m.records.read(op, path, watched)
	var w *Watch // a variable and no result, because Late reads it after the return
	if watched && r.Invalid == nil {
		key := watchKey{r.Path, dataWatch}
		if op == wire.OpGetChildren2 {
			key.kind = childWatch
		}
		e := s.hub.pin(key)
		defer s.hub.unpin(e)
		// In the reader's goroutine, so that no event of the watch arrives before the
		// subscription.
		r.Then = func(c *wire.Call) {
			if armsWatch(c) {
				w = s.hub.subscribe(key, c.Conn, c.Code != 0)
			}
		}
		// The caller has gone, and nobody would receive the event.
		r.Late = func(*wire.Call) { w.Stop() }
	}
	c, _, err := s.requests.repeat(ctx, r)
	err = s.m.failure(c, err)
	switch {
	case err == nil:
		d := wire.Decoder{B: c.Body}
		if decode(&d); !d.Bad {
			return w, nil
		}
		w.Stop()
		err = wire.ErrMalformed
	case c != nil && op == wire.OpExists && c.Code == codeNoNode:
		return w, nil // the server has armed a watch for the creation
	}
	return nil, opError(wire.OpName(op), path, err)
}

func get(ctx context.Context, s *Session, path string, watched bool) (data []byte, stat *zk.Stat, w *Watch, err error) {
	w, err = read(ctx, s, wire.OpGetData, path, watched, func(d *wire.Decoder) { data, stat = d.Buffer(), d.Stat() })
	return data, stat, w, err
}

func exists(ctx context.Context, s *Session, path string, watched bool) (ok bool, stat *zk.Stat, w *Watch, err error) {
	w, err = read(ctx, s, wire.OpExists, path, watched, func(d *wire.Decoder) { ok, stat = true, d.Stat() })
	return ok, stat, w, err
}

func children(ctx context.Context, s *Session, path string, watched bool) (names []string, stat *zk.Stat, w *Watch, err error) {
	w, err = read(ctx, s, wire.OpGetChildren2, path, watched, func(d *wire.Decoder) { names, stat = d.Strings(), d.Stat() })
	slices.Sort(names)
	return names, stat, w, err
}

// ChildNames is like Children, for callers that look through a long list once. The names
// come in the server's order, which is unspecified, and are parts of one string that
// holds all names. Use strings.Clone to keep a name.
func (s *Session) ChildNames(ctx context.Context, path string) (names iter.Seq[string], stat *zk.Stat, err error) {
	_, err = read(ctx, s, wire.OpGetChildren2, path, false, func(d *wire.Decoder) { names, stat = d.List(), d.Stat() })
	return names, stat, err
}

// Get returns the data of a znode and its Stat. Like every read, Get is repeated over
// lost connections.
func (s *Session) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	data, stat, _, err := get(ctx, s, path, false)
	return data, stat, err
}

// Exists reports whether a znode exists, and returns its Stat if it does.
func (s *Session) Exists(ctx context.Context, path string) (bool, *zk.Stat, error) {
	ok, stat, _, err := exists(ctx, s, path, false)
	return ok, stat, err
}

// Children returns the sorted names of a znode's children, and its Stat. Names of a list
// above 64 KiB share strings of about 4 KiB: use strings.Clone to keep a name for long.
func (s *Session) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	names, stat, _, err := children(ctx, s, path, false)
	return names, stat, err
}

// WatchData is like Get, with a Watch for a change or the removal of the znode. If the
// znode does not exist, there is no Watch.
func (s *Session) WatchData(ctx context.Context, path string) ([]byte, *zk.Stat, *Watch, error) {
	return get(ctx, s, path, true)
}

// WatchExists is like Exists, with a Watch for the creation, change or removal of the
// znode.
func (s *Session) WatchExists(ctx context.Context, path string) (bool, *zk.Stat, *Watch, error) {
	return exists(ctx, s, path, true)
}

// WatchChildren is like Children, with a Watch for a change of the list or the removal of
// the znode.
func (s *Session) WatchChildren(ctx context.Context, path string) ([]string, *zk.Stat, *Watch, error) {
	return children(ctx, s, path, true)
}

// GetW is like Get, with a channel for the next change. The channel delivers one event
// and is then closed. ctx bounds the watch as well as the call. If ctx or the session
// ends first, the event is of type zk.EventNotWatching and its Err has the reason. The
// channel has a buffer of one, so no goroutine needs to receive from it.
func (s *Session) GetW(ctx context.Context, path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	data, stat, w, err := get(ctx, s, path, true)
	return data, stat, w.follow(ctx), err
}

// ExistsW is like Exists, with a channel as in GetW. The watch includes the creation of a
// znode that does not exist.
func (s *Session) ExistsW(ctx context.Context, path string) (bool, *zk.Stat, <-chan zk.Event, error) {
	ok, stat, w, err := exists(ctx, s, path, true)
	return ok, stat, w.follow(ctx), err
}

// ChildrenW is like Children, with a channel as in GetW.
func (s *Session) ChildrenW(ctx context.Context, path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	names, stat, w, err := children(ctx, s, path, true)
	return names, stat, w.follow(ctx), err
}
