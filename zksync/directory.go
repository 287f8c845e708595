package zksync

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// A directory is where a line's places live. Writing nothing to a directory
// that holds nothing is how a place learns, in the transaction that creates it,
// how many others there are; so it is remembered whether that may be done.
type directory struct {
	path string

	mu    sync.Mutex
	touch touch
}

type touch uint8

const (
	untried   touch = iota
	allowed         // it holds no data
	forbidden       // it holds somebody's data, or its ACL keeps us from writing
)

func (d *directory) set(t touch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.touch = t
}

// touchable says whether the directory may be written to, looking and making
// it where that is not known.
func (d *directory) touchable(ctx context.Context, s *session.Session) (bool, error) {
	d.mu.Lock()
	t := d.touch
	d.mu.Unlock()
	if t != untried {
		return t == allowed, nil
	}
	ok, stat, err := s.Exists(ctx, d.path)
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		// Servers from 3.8.4 on keep this from those who may not read.
		d.set(forbidden)
		return false, nil
	case err != nil:
		return false, err
	case !ok:
		return true, d.make(ctx, s)
	case stat.DataLength > 0:
		d.set(forbidden)
		return false, nil
	}
	d.set(allowed)
	return true, nil
}

// make creates the directory, which somebody may have done at the same time.
func (d *directory) make(ctx context.Context, s *session.Session) error {
	if err := s.MakeDir(ctx, d.path); err != nil {
		return err
	}
	// If it was another who made it, then for the same purpose.
	d.set(allowed)
	return nil
}

// renew is for a directory whose counter is spent: after 2^31 children the
// server refuses every further one as existing already. The only way to count
// anew is another directory, which can be had when the line has emptied. It
// returns whenever things have changed, so that another try is worthwhile.
func (d *directory) renew(ctx context.Context, s *session.Session) error {
	names, _, w, err := s.WatchChildren(ctx, d.path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case err != nil:
		return err
	}
	defer w.Stop()
	if len(names) == 0 {
		err := s.Delete(ctx, d.path, -1)
		if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNotEmpty) || errors.Is(err, session.ErrConnectionLost) {
			return nil
		}
		return err
	}
	select {
	case <-w.Events():
		return nil
	case <-s.Done():
		return s.Err()
	case <-ctx.Done():
		return cancelled(ctx)
	}
}
