package zksync

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session"
)

// maxSwept is how many markers are looked at in one request.
const maxSwept = 1000

// sweepMarkers removes the markers of processes that have died: those that nobody
// has written to for a day before own was made. It does what it can; the next one
// who makes a marker sweeps, too.
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
			reads[i] = session.ReadData(child(dir, name))
		}
		results, err := s.MultiRead(ctx, reads...)
		if err != nil {
			return
		}
		for i, r := range results {
			if r.Err != nil || r.Stat.Mtime >= oldest {
				continue
			}
			path := child(dir, chunk[i])
			// With its version, in case that its owner is there after all.
			if err := s.Delete(ctx, path, r.Stat.Version); err != nil {
				log.Debug("could not sweep up a marker", zap.String("path", path), zap.Error(err))
			}
		}
	}
}
