package znode

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// A Directory is the parent of the znodes of a primitive. A transaction that writes an
// empty value to the directory learns from the answer how many children there are. A
// Directory remembers whether that write is allowed.
type Directory struct {
	Path    string
	Lasting bool   // the directory stays when it is empty
	Data    []byte // the data with which the directory is created

	access    atomic.Uint32 // accessUnknown, writable or notWritable
	exhausted atomic.Int64  // the czxid of the last directory whose counter was exhausted
}

const (
	accessUnknown = iota
	writable      // the directory has no data
	notWritable   // the directory has data, or its ACL forbids the write
)

// Forbid notes that the directory may not be written to.
func (d *Directory) Forbid() { d.access.Store(notWritable) }

// Writable reports whether the directory may be written to. If that is not known,
// Writable reads the directory, and creates it if it does not exist. A directory with Data
// must exist.
func (d *Directory) Writable(ctx context.Context, s *session.Session) (bool, error) {
	if d.Data != nil {
		return false, nil // the write would overwrite the data of the primitive
	}
	for round := 0; ; round++ {
		if a := d.access.Load(); a != accessUnknown {
			return a == writable, nil
		}
		if err := s.Pause(ctx, round-1); err != nil {
			return false, err
		}
		ok, stat, err := s.Exists(ctx, d.Path)
		switch {
		case session.ClassOf(err) == session.ClassNoAuth:
			// Servers from 3.8.4 on do not tell a client that may not read the znode.
			d.Forbid()
			return false, nil
		case err != nil:
			return false, err
		case !ok:
			if err := d.Create(ctx, s); err != nil {
				return false, err
			}
		case stat.DataLength > 0:
			// The write would overwrite the data of another program.
			d.Forbid()
		default:
			d.access.Store(writable)
		}
	}
}

// Create creates the directory. It is not an error if another client has created the
// directory: it may have data, and the next Writable looks at it.
func (d *Directory) Create(ctx context.Context, s *session.Session) error {
	created, err := d.create(ctx, s)
	switch {
	case err != nil:
	case created:
		d.access.Store(writable)
	default:
		d.access.Store(accessUnknown)
	}
	return err
}

// create creates a container, or an ordinary znode if the directory is to last. It reports false if another client may
// have created the directory.
func (d *Directory) create(ctx context.Context, s *session.Session) (created bool, err error) {
	if !d.Lasting {
		return s.CreateDir(ctx, d.Path)
	}
	for round := 0; ; round++ {
		if err := s.Pause(ctx, round-1); err != nil {
			return false, err
		}
		_, err := s.Create(ctx, d.Path, d.Data, zk.FlagPersistent)
		switch session.ClassOf(err) {
		case session.ClassOK:
			return true, nil
		case session.ClassNodeExists:
			return false, nil
		case session.ClassNoNode:
			if err := s.MakeDir(ctx, Dir(d.Path)); err != nil {
				return false, err
			}
		case session.ClassConnectionLost:
			// The next attempt creates the directory, or finds it.
		default:
			return false, err
		}
	}
}

// maxNamed is the number of children that an error names.
const maxNamed = 8

// MarkExhausted notes that the counter of the present directory is exhausted. The
// counter stops at the greatest int32, and the server gives that number to every later
// znode.
func (d *Directory) MarkExhausted(ctx context.Context, s *session.Session) error {
	ok, stat, err := s.Exists(ctx, d.Path)
	// The czxid tells this directory from the next one at the same path.
	if ok && err == nil {
		d.exhausted.Store(stat.Czxid)
	}
	return err
}

// Recreate deletes a directory whose counter is exhausted, and creates it again: only a
// new directory counts from zero. The data of the directory stays. The deletion requires that the directory is empty.
// Recreate waits for that, or reports false if wait is false. It fails if all children are
// strange, that is, leaves reports false for their names: no client of the primitive would delete
// them. The caller must have no znode in the directory, so that callers do not wait for each other.
func (d *Directory) Recreate(ctx context.Context, s *session.Session, wait bool, leaves func(name string) bool) (bool, error) {
	exhausted := d.exhausted.Load()
	for round := 0; ; {
		names, stat, w, err := s.WatchChildren(ctx, d.Path)
		switch {
		case session.ClassOf(err) == session.ClassNoNode:
			return true, d.Create(ctx, s)
		case err != nil:
			return false, err
		case stat.Czxid != exhausted:
			// Another client has created the directory again since.
			w.Stop()
			return true, nil
		case len(names) == 0:
			w.Stop()
			switch err := d.replace(ctx, s); session.ClassOf(err) {
			case session.ClassOK, session.ClassNoNode, session.ClassNotEmpty, session.ClassBadVersion, session.ClassConnectionLost:
				// The next listing shows what has become of the directory.
			default:
				return false, fmt.Errorf("the sequence numbers of %s are used up, and it cannot be created anew with its %d bytes of data: %w", d.Path, stat.DataLength, err)
			}
			if err := s.Pause(ctx, round); err != nil {
				return false, err
			}
			round++
			continue
		case !slices.ContainsFunc(names, leaves):
			w.Stop()
			return false, fmt.Errorf("%w: the sequence numbers of %s are used up, and only an empty directory can be created anew: delete these children of other programs: %q", zk.ErrNotEmpty, d.Path, names[:min(len(names), maxNamed)])
		case !wait:
			w.Stop()
			return false, nil
		}
		if err := AwaitEvent(ctx, s, w); err != nil {
			return false, err
		}
	}
}

// replace deletes the directory, which must be empty. The same transaction creates it again if it has
// data: the data may be the size of a semaphore that operators have set, or belong to another program. The new
// znode is no container, because nothing shows whether the former one was, and a container does not keep data.
func (d *Directory) replace(ctx context.Context, s *session.Session) error {
	data, stat, err := s.Get(ctx, d.Path)
	if err != nil {
		return err
	}
	// At this version, because a later write would be lost.
	ops := []any{&zk.DeleteRequest{Path: d.Path, Version: stat.Version}}
	if len(data) > 0 {
		ops = append(ops, &zk.CreateRequest{Path: d.Path, Data: data})
	}
	_, err = s.Multi(ctx, ops...)
	return err
}
