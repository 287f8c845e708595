package commit

import (
	"context"
	"slices"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// maxSwept is the number of markers that one request reads.
const maxSwept = 1000

// maxSweptAtOnce is the number of markers that one request deletes.
const maxSweptAtOnce = 200

// sweepMarkers deletes the markers that were written last more than a day before own
// was created: the markers of processes that have died. After a failure the next
// process that creates a marker sweeps again. It runs in the background, and delays no
// transaction.
func sweepMarkers(ctx context.Context, log *zap.Logger, s *session.Session, dir, own string) {
	names, _, err := s.Children(ctx, dir)
	if err != nil || len(names) < 2 {
		return
	}
	_, mine, err := s.Get(ctx, own)
	if err != nil {
		return
	}
	oldest := mine.Mtime - markerAge.Milliseconds()
	for chunk := range slices.Chunk(names, maxSwept) {
		reads := make([]session.Read, len(chunk))
		for i, name := range chunk {
			reads[i] = session.ReadData(znode.Join(dir, name))
		}
		results, err := s.MultiRead(ctx, reads...)
		if err != nil {
			return
		}
		var dead []any
		for i, r := range results {
			if r.Err != nil || r.Stat.Mtime >= oldest {
				continue
			}
			// The version protects the marker if its owner is alive after all.
			dead = append(dead, &zk.DeleteRequest{Path: znode.Join(dir, chunk[i]), Version: r.Stat.Version})
		}
		for ops := range slices.Chunk(dead, maxSweptAtOnce) {
			if err := deleteMatching(ctx, s, ops); err != nil {
				log.Debug("could not delete old markers", zap.String("path", dir), zap.Error(err))
				return
			}
		}
	}
}

// deleteMatching carries out the deletes whose znodes have the given versions, and
// skips the others, in few requests.
func deleteMatching(ctx context.Context, s *session.Session, ops []any) error {
	for len(ops) > 0 {
		results, err := s.Multi(ctx, ops...)
		if err == nil {
			return nil
		}
		at, class := session.FailedOp(results), session.ClassOf(err)
		if at < 0 || class != session.ClassNoNode && class != session.ClassBadVersion && class != session.ClassNotEmpty {
			return err
		}
		// Another process sweeps, too, or the owner is alive.
		ops = slices.Concat(ops[:at], ops[at+1:])
	}
	return nil
}
