package zksync

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

const (
	// markerAge is how old a marker is, by the server's clock, when it is taken
	// for that of a process that has died. A live one makes another.
	markerAge = 24 * time.Hour
	// maxMarkerVersion keeps the version from ever becoming -1, which is any.
	maxMarkerVersion = 1 << 30
)

// fenceMark is what a marker holds that was moved on in order to stop a request.
const fenceMark = "fence"

// A verdict says what came of a request.
type verdict int

const (
	stopped  verdict = iota // it has not happened, and never will
	happened                // it has, once
)

// A marker is the znode whose version tells which requests of a committer have
// happened. It is the runner's.
type marker struct {
	dir   string
	swept *atomic.Bool // shared by those of one value
	log   *zap.Logger
	// background runs f beside the requests, until the committer is closed.
	background func(f func(ctx context.Context))

	path    string // empty before the first request
	made    bool
	number  int64 // how many were made
	version int32
	retired []string // those before it
}

// bump is the operation that moves the marker on.
func (k *marker) bump() any {
	return &zk.SetDataRequest{Path: k.path, Data: []byte{}, Version: k.version}
}

// ensure makes the marker where there is none.
func (k *marker) ensure(ctx context.Context, s *session.Session) error {
	if k.made && k.version < maxMarkerVersion {
		return nil
	}
	if k.made {
		k.forget()
	}
	if k.path == "" {
		k.path = znode.Join(k.dir, znode.NewGUID())
	}
	_, err := s.Create(ctx, k.path, []byte{}, zk.FlagPersistent)
	fresh := session.ClassOf(err) == session.ClassNoNode
	if fresh {
		if err = s.MakeDir(ctx, k.dir); err == nil {
			_, err = s.Create(ctx, k.path, []byte{}, zk.FlagPersistent)
		}
	}
	// One that is there is ours, from a try whose answer was lost.
	if err != nil && session.ClassOf(err) != session.ClassNodeExists {
		return err
	}
	k.made, k.version = true, 0
	k.number++
	if k.swept.CompareAndSwap(false, true) && !fresh {
		path := k.path
		k.background(func(ctx context.Context) { sweepMarkers(ctx, k.log, s, k.dir, path) })
	}
	return nil
}

// forget makes the next request have another marker.
func (k *marker) forget() {
	if k.path != "" {
		k.retired = append(k.retired, k.path)
	}
	k.path, k.made, k.version = "", false, 0
}

// look says what came of a request that has found another version than expected,
// though an earlier try had the right one.
func (k *marker) look(ctx context.Context, s *session.Session) (verdict, error) {
	data, stat, err := s.Get(ctx, k.path)
	switch class := session.ClassOf(err); {
	case class == session.ClassNoNode || class == session.ClassNoAuth:
		return 0, unknown(err)
	case err != nil:
		return 0, err
	case stat.Version != k.version+1, len(data) > 0 && string(data) != fenceMark:
		return 0, unknown(errMarkerMoved)
	}
	k.version++
	if string(data) == fenceMark {
		return stopped, nil
	}
	return happened, nil
}

// errMarkerMoved says that somebody else has written to a marker.
var errMarkerMoved = errors.New("somebody else has written to " + markersName)

// fence moves the marker on, so that no request that was sent before can happen
// any more, and says what came of the last one.
func (k *marker) fence(ctx context.Context, s *session.Session) (verdict, error) {
	_, err := s.Set(ctx, k.path, []byte(fenceMark), k.version)
	switch session.ClassOf(err) {
	case session.ClassOK:
		k.version++
		return stopped, nil
	case session.ClassBadVersion:
		return k.look(ctx, s)
	case session.ClassNoNode, session.ClassNoAuth:
		return 0, unknown(err)
	}
	return 0, err
}

// remove takes the marker away when no request will need it any more.
func (k *marker) remove(ctx context.Context, m *session.Manager) {
	k.forget()
	for _, path := range k.retired {
		err := m.Do(ctx, func(ctx context.Context, s *session.Session) error {
			err := s.Delete(ctx, path, -1)
			if session.ClassOf(err) == session.ClassNoNode {
				return nil
			}
			return err
		})
		if err != nil {
			m.Logger().Warn("a queue's marker stays behind; it is swept up after a day", zap.String("path", path), zap.Error(err))
			return
		}
	}
}
