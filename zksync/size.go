package zksync

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session"
)

// A size is the number of units of a Semaphore: n, or the number in a znode.
type size struct {
	m    *session.Manager
	n    int
	path string // of the znode; empty if there is none

	mu     sync.Mutex
	warned int64 // the zxid of the change that left the znode without a number
}

// A sizing is a size as of one look.
type sizing struct {
	n       int
	version int32          // of the znode, -1 if there is none
	watch   *session.Watch // nil if the size cannot change
}

func (z *sizing) events() <-chan zk.Event {
	if z == nil || z.watch == nil {
		return nil
	}
	return z.watch.Events()
}

func (z *sizing) stop() {
	if z != nil && z.watch != nil {
		z.watch.Stop()
	}
}

// get reads the size.
func (z *size) get(ctx context.Context, s *session.Session) (*sizing, error) {
	if z.path == "" {
		return &sizing{n: z.n, version: -1}, nil
	}
	data, stat, err := s.Get(ctx, z.path)
	return z.read(nil, data, stat, err)
}

// follow reads the size and watches it.
func (z *size) follow(ctx context.Context, s *session.Session) (*sizing, error) {
	if z.path == "" {
		return &sizing{n: z.n, version: -1}, nil
	}
	for {
		data, stat, w, err := s.WatchData(ctx, z.path)
		if session.ClassOf(err) != session.ClassNoNode {
			return z.read(w, data, stat, err)
		}
		ok, _, w, err := s.WatchExists(ctx, z.path)
		if err != nil {
			return nil, err
		}
		if !ok {
			return z.fallback(w), nil
		}
		w.Stop() // it has come meanwhile
	}
}

func (z *size) read(w *session.Watch, data []byte, stat *zk.Stat, err error) (*sizing, error) {
	if session.ClassOf(err) == session.ClassNoNode {
		return z.fallback(w), nil
	}
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || n < 0 {
		z.warn(data, stat)
		n = z.n
	}
	return &sizing{n: n, version: stat.Version, watch: w}, nil
}

// fallback is the size while the znode does not exist.
func (z *size) fallback(w *session.Watch) *sizing {
	return &sizing{n: z.n, version: -1, watch: w}
}

// warn logs, once for each change, that the znode has no number.
func (z *size) warn(data []byte, stat *zk.Stat) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.warned == stat.Mzxid {
		return
	}
	z.warned = stat.Mzxid
	const enough = 64
	z.m.Logger().Warn("the size of a semaphore is not a number; going by the default",
		zap.String("path", z.path), zap.ByteString("data", data[:min(len(data), enough)]), zap.Int("default", z.n))
}
