package zksync

import (
	"context"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// A directory is where a line's places live. Writing nothing to a directory
// that holds nothing is how a place learns, in the transaction that creates it,
// how many others there are; so it is remembered whether that may be done.
type directory struct {
	path    string
	lasting bool   // it is to stay when it is empty
	data    []byte // that it is made with

	mu    sync.Mutex
	touch touch
	spent int64 // the czxid of the last one whose counter was
}

type touch uint8

const (
	untried   touch = iota
	allowed         // it holds no data
	forbidden       // it holds somebody's data, or its ACL keeps us from writing
)

func (d *directory) set(t touch) {
	if d.data != nil {
		t = forbidden
	}
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
	case session.ClassOf(err) == session.ClassNoAuth:
		// Servers from 3.8.4 on keep this from those who may not read.
		d.set(forbidden)
		return false, nil
	case err != nil:
		return false, err
	case !ok:
		return d.data == nil, d.make(ctx, s)
	case stat.DataLength > 0 || d.data != nil:
		d.set(forbidden)
		return false, nil
	}
	d.set(allowed)
	return true, nil
}

// make creates the directory, which somebody may have done at the same time.
func (d *directory) make(ctx context.Context, s *session.Session) error {
	if err := d.create(ctx, s); err != nil {
		return err
	}
	// If it was another who made it, then for the same purpose.
	d.set(allowed)
	return nil
}

// create makes the znode: a container, or an ordinary one if that is to last.
func (d *directory) create(ctx context.Context, s *session.Session) error {
	if !d.lasting {
		return s.MakeDir(ctx, d.path)
	}
	for round := 0; ; round++ {
		if err := s.Pause(ctx, round-1); err != nil {
			return err
		}
		_, err := s.Create(ctx, d.path, d.data, zk.FlagPersistent)
		switch session.ClassOf(err) {
		case session.ClassOK, session.ClassNodeExists:
			return nil
		case session.ClassNoNode:
			if err := s.MakeDir(ctx, dirName(d.path)); err != nil {
				return err
			}
		case session.ClassConnectionLost:
		default:
			return err
		}
	}
}

// exhaust notes that the counter of the directory is spent: it stops at the
// greatest int32, which the server gives to everybody from then on.
func (d *directory) exhaust(ctx context.Context, s *session.Session) error {
	ok, stat, err := s.Exists(ctx, d.path)
	if err != nil || !ok {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spent = stat.Czxid
	return nil
}

// renew puts another directory in the place of one whose counter is spent,
// which is the only way to count anew. That can be had when the line has emptied:
// renew waits for it, or reports false where that is not wanted. It creates no
// znode before, so that those who wait don't keep each other from it.
func (d *directory) renew(ctx context.Context, s *session.Session, wait bool) (bool, error) {
	d.mu.Lock()
	spent := d.spent
	d.mu.Unlock()
	for round := 0; ; {
		names, stat, w, err := s.WatchChildren(ctx, d.path)
		switch {
		case session.ClassOf(err) == session.ClassNoNode:
			return true, d.make(ctx, s)
		case err != nil:
			return false, err
		case stat.Czxid != spent:
			w.Stop()
			return true, nil
		case len(names) == 0:
			w.Stop()
			switch err := s.Delete(ctx, d.path, -1); session.ClassOf(err) {
			case session.ClassOK, session.ClassNoNode, session.ClassNotEmpty, session.ClassConnectionLost:
			default:
				return false, err
			}
			if err := s.Pause(ctx, round); err != nil {
				return false, err
			}
			round++
			continue
		case !wait:
			w.Stop()
			return false, nil
		}
		select {
		case <-w.Events():
		case <-s.Done():
			w.Stop()
			return false, s.Err()
		case <-ctx.Done():
			w.Stop()
			return false, session.Cancelled(ctx)
		}
	}
}
