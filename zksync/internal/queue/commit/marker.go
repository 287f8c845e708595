package commit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
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
	// maxSwept is the number of markers that one request reads or deletes.
	maxSwept = 200
)

// The data of a marker tell what has written it last: a request, or a fence that stops one.
const (
	requestMark markKind = "request"
	fenceMark   markKind = "fence"
)

type markKind string

// raising returns the data of a write that raises the version to version. The data names the version: another
// client may write the data again that the marker has, and raises the version, too.
func (m markKind) raising(version int32) []byte { return fmt.Appendf(nil, "%s %d", m, version) }

// A marker is the znode whose version tells which requests of a Committer have
// happened. The run of the Committer uses it.
type marker struct {
	c     *Committer
	dir   string
	swept *atomic.Bool // shared by the Committers of one value

	path    string // empty before the first request
	made    bool
	unsure  bool // an attempt to create path has an unknown outcome
	version int32
	retired []string // the earlier markers, which remove deletes
}

// bump returns the operation that raises the version.
func (k *marker) bump() any {
	return &zk.SetDataRequest{Path: k.path, Data: requestMark.raising(k.version + 1), Version: k.version}
}

// ensure creates the marker if it does not exist.
func (k *marker) ensure(ctx context.Context, s *session.Session) error {
	if k.made && k.version < maxMarkerVersion {
		return nil
	}
	if k.made {
		k.retire()
	}
	// A creation that failed is repeated under the same name: it may have happened.
	if k.path == "" {
		k.path = znode.Join(k.dir, znode.NewGUID())
	}
	_, err := s.Create(ctx, k.path, []byte{}, zk.FlagPersistent)
	fresh := false
	// Again and again: the server deletes an empty directory when it likes.
	for round := 0; session.ClassOf(err) == session.ClassNoNode; round++ {
		fresh = true
		if err = s.Pause(ctx, round); err != nil {
			return err
		}
		if err = s.MakeDir(ctx, k.dir); err == nil {
			_, err = s.Create(ctx, k.path, []byte{}, zk.FlagPersistent)
		}
	}
	// A marker that exists is ours: its name has our GUID, and an answer was lost.
	switch class := session.ClassOf(err); class {
	case session.ClassOK, session.ClassNodeExists:
	case session.ClassNoAuth, session.ClassFinal, session.ClassTooLarge:
		if !k.unsure {
			k.path = "" // there is no marker, so remove has nothing to delete
		}
		return err
	default:
		k.unsure = true
		return err
	}
	k.made, k.version = true, 0
	// A directory that did not exist has no marker of another process.
	if k.swept.CompareAndSwap(false, true) && !fresh {
		path := k.path
		k.c.wg.Go(func() { k.sweep(k.c.open, s, path) })
	}
	return nil
}

// retire makes the next request create another marker.
func (k *marker) retire() {
	if k.path != "" {
		k.retired = append(k.retired, k.path)
	}
	k.path, k.made, k.unsure = "", false, false
}

// errMarkerMoved says that another client has written to a marker.
var errMarkerMoved = errors.New("another client has written to the marker")

// fence raises the version, so that no request that was sent before can happen any
// more, and reports whether the last request has happened.
func (k *marker) fence(ctx context.Context, s *session.Session) (happened bool, err error) {
	_, err = s.Set(ctx, k.path, fenceMark.raising(k.version+1), k.version)
	switch session.ClassOf(err) {
	case session.ClassOK:
		k.version++
		return false, nil
	case session.ClassBadVersion:
		return k.readOutcome(ctx, s)
	case session.ClassNoNode, session.ClassNoAuth:
		// Only the marker could tell whether the last request has happened.
		err = unknown(err)
	}
	return false, err
}

// readOutcome reports whether the last request has happened, after a fence has found
// another version than expected: the request or an earlier try of the fence has raised it.
func (k *marker) readOutcome(ctx context.Context, s *session.Session) (happened bool, err error) {
	data, stat, err := s.Get(ctx, k.path)
	happened = bytes.Equal(data, requestMark.raising(k.version+1))
	switch class := session.ClassOf(err); {
	case class == session.ClassNoNode || class == session.ClassNoAuth:
		return false, unknown(err)
	case err != nil:
		return false, err
	case stat.Version != k.version+1, !happened && !bytes.Equal(data, fenceMark.raising(k.version+1)):
		// A request and a fence raise the version by one, and leave their marks.
		return false, unknown(errMarkerMoved)
	}
	k.version++
	return happened, nil
}

// remove deletes the marker and the earlier markers. No request follows.
func (k *marker) remove(ctx context.Context) {
	k.retire()
	for _, path := range k.retired {
		err := k.c.m.Do(ctx, func(ctx context.Context, s *session.Session) error {
			err := s.Delete(ctx, path, -1)
			if session.ClassOf(err) == session.ClassNoNode {
				return nil
			}
			return err
		})
		if err != nil {
			// No error of Close: another process sweeps the marker after a day.
			k.c.m.Logger().Warn("marker not deleted", zap.String("path", path), zap.Error(err))
			return
		}
	}
}

// sweep deletes the markers that were written last more than a day before own was
// created: the markers of processes that have died. The next process that creates a
// marker deletes the markers that are left after a failure. sweep runs in the background,
// and delays no transaction.
func (k *marker) sweep(ctx context.Context, s *session.Session, own string) {
	names, _, err := s.Children(ctx, k.dir)
	if err != nil || len(names) < 2 {
		return
	}
	_, mine, err := s.Get(ctx, own)
	if err != nil {
		return
	}
	// Both times are by the leader's clock: the clock of this process may be wrong.
	oldest := mine.Mtime - markerAge.Milliseconds()
	for chunk := range slices.Chunk(names, maxSwept) {
		reads := make([]session.Read, len(chunk))
		for i, name := range chunk {
			reads[i] = session.ReadData(znode.Join(k.dir, name))
		}
		results, err := s.MultiRead(ctx, reads...)
		if err != nil {
			return
		}
		var dead []any
		for i, r := range results {
			// No marker has children, and one child would make the whole transaction fail.
			if r.Err != nil || r.Stat.Mtime >= oldest || r.Stat.NumChildren > 0 {
				continue
			}
			// The version protects the marker if its owner is alive after all.
			dead = append(dead, &zk.DeleteRequest{Path: znode.Join(k.dir, chunk[i]), Version: r.Stat.Version})
		}
		if len(dead) == 0 {
			continue
		}
		_, err = s.Multi(ctx, dead...)
		switch session.ClassOf(err) {
		case session.ClassOK, session.ClassNoNode, session.ClassBadVersion, session.ClassNotEmpty:
			// After a refusal, another process sweeps these markers, or an owner is alive.
		default:
			k.c.m.Logger().Debug("could not delete old markers", zap.String("path", k.dir), zap.Error(err))
			return
		}
	}
}
