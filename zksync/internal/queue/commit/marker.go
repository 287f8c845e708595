package commit

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
	// markerAge is the age, by the server's clock, at which a marker counts as the
	// marker of a process that has died. A live process creates another.
	markerAge = 24 * time.Hour
	// maxMarkerVersion keeps the version from becoming -1, which matches any version.
	maxMarkerVersion = 1 << 30
)

// fenceMark is the data of a marker that was written last to stop a request.
const fenceMark = "fence"

// An outcome is the known outcome of a request.
type outcome int

const (
	stopped  outcome = iota // it has not happened, and never will
	happened                // it has, once
)

// A marker is the znode whose version tells which requests of a Committer have
// happened. The run of the Committer uses it.
type marker struct {
	dir   string
	swept *atomic.Bool // shared by the Committers of one value
	log   *zap.Logger
	// background runs f beside the requests, until Close.
	background func(f func(ctx context.Context))

	path    string // empty before the first request
	made    bool
	number  int64 // of markers that were created
	version int32
	retired []string // the earlier markers, which remove deletes
}

// bump returns the operation that raises the version.
func (k *marker) bump() any {
	return &zk.SetDataRequest{Path: k.path, Data: []byte{}, Version: k.version}
}

// ensure creates the marker if it does not exist.
func (k *marker) ensure(ctx context.Context, s *session.Session) error {
	if k.made && k.version < maxMarkerVersion {
		return nil
	}
	if k.made {
		k.retire()
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
	// A marker that exists is ours: its name has our GUID, and an answer was lost.
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

// retire makes the next request create another marker.
func (k *marker) retire() {
	if k.path != "" {
		k.retired = append(k.retired, k.path)
	}
	k.path, k.made, k.version = "", false, 0
}

// readOutcome returns the outcome of a request that has found another version than
// expected, although an earlier request had expected the right version.
func (k *marker) readOutcome(ctx context.Context, s *session.Session) (outcome, error) {
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

// errMarkerMoved says that another client has written to a marker.
var errMarkerMoved = errors.New("another client has written to the marker")

// fence raises the version, so that no request that was sent before can happen any
// more, and returns the outcome of the last request.
func (k *marker) fence(ctx context.Context, s *session.Session) (outcome, error) {
	_, err := s.Set(ctx, k.path, []byte(fenceMark), k.version)
	switch session.ClassOf(err) {
	case session.ClassOK:
		k.version++
		return stopped, nil
	case session.ClassBadVersion:
		return k.readOutcome(ctx, s)
	case session.ClassNoNode, session.ClassNoAuth:
		return 0, unknown(err)
	}
	return 0, err
}

// remove deletes the marker and the earlier markers. No request follows.
func (k *marker) remove(ctx context.Context, m *session.Manager) {
	k.retire()
	for _, path := range k.retired {
		err := m.Do(ctx, func(ctx context.Context, s *session.Session) error {
			err := s.Delete(ctx, path, -1)
			if session.ClassOf(err) == session.ClassNoNode {
				return nil
			}
			return err
		})
		if err != nil {
			m.Logger().Warn("marker not deleted", zap.String("path", path), zap.Error(err))
			return
		}
	}
}
