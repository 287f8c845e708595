package zksync

import (
	"context"
	"slices"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// maxSwept is how many markers are looked at in one request.
const maxSwept = 1000

// maxSweptAtOnce is how many are removed in one request.
const maxSweptAtOnce = 200

// sweepMarkers removes the markers of processes that have died: those that nobody
// has written to for a day before own was made. It does what it can; the next one
// who makes a marker sweeps, too. It runs in the background: no Put waits for it.
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
			// With its version, in case that its owner is there after all.
			dead = append(dead, &zk.DeleteRequest{Path: znode.Join(dir, chunk[i]), Version: r.Stat.Version})
		}
		for ops := range slices.Chunk(dead, maxSweptAtOnce) {
			if err := sweepAll(ctx, s, ops); err != nil {
				log.Debug("could not sweep up markers", zap.String("path", dir), zap.Error(err))
				return
			}
		}
	}
}

// sweepAll carries out those of the operations that can be, in few requests.
func sweepAll(ctx context.Context, s *session.Session, ops []any) error {
	for len(ops) > 0 {
		results, err := s.Multi(ctx, ops...)
		if err == nil {
			return nil
		}
		at, class := session.FailedOp(results), session.ClassOf(err)
		if at < 0 || class != session.ClassNoNode && class != session.ClassBadVersion && class != session.ClassNotEmpty {
			return err
		}
		// Another value sweeps, too, or the owner is there.
		ops = slices.Concat(ops[:at], ops[at+1:])
	}
	return nil
}
