package line

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session"
)

// ErrTooMany says that a request is for more units than the semaphore has.
var ErrTooMany = errors.New("zksync: too many units")

// A unitSize is the number of units of a Semaphore: n, or the number in a znode.
type unitSize struct {
	m    *session.Manager
	n    int
	path string // of the znode; empty if there is none

	warned atomic.Int64 // the zxid of the change that left the znode without a number
}

// A sizeRead is the result of one read of a unitSize.
type sizeRead struct {
	n       int
	version int32          // of the znode, -1 if there is none
	watch   *session.Watch // nil if the size cannot change
}

// read reads the number of units. If watched, it also watches the znode.
func (z *unitSize) read(ctx context.Context, s *session.Session, watched bool) (sizeRead, error) {
	found := sizeRead{n: z.n, version: -1} // the size that counts while the znode does not exist
	if z.path == "" {
		return found, nil
	}
	for round := 0; ; round++ {
		// The znode may be created between the two reads below. A server whose answers contradict
		// each other must not be asked in a tight loop.
		if err := s.Pause(ctx, round); err != nil {
			return found, err
		}
		var data []byte
		var stat *zk.Stat
		var w *session.Watch
		var err error
		if watched {
			data, stat, w, err = s.WatchData(ctx, z.path)
		} else {
			data, stat, err = s.Get(ctx, z.path)
		}
		switch {
		case err == nil:
			return sizeRead{n: z.parse(data, stat), version: stat.Version, watch: w}, nil
		case session.ClassOf(err) != session.ClassNoNode:
			return found, err
		case !watched:
			// Only a watch needs the look by exists below.
			return found, nil
		}
		// A read that finds no znode leaves no watch behind, but exists does.
		ok, _, w, err := s.WatchExists(ctx, z.path)
		if err != nil {
			return found, err
		}
		if !ok {
			found.watch = w
			return found, nil
		}
		w.Stop() // the znode was created meanwhile
	}
}

// parse returns the size that the znode has, or the default. It logs, once for each change, that
// the znode has no number.
func (z *unitSize) parse(data []byte, stat *zk.Stat) int {
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err == nil && n >= 0 {
		return n
	}
	if z.warned.Swap(stat.Mzxid) != stat.Mzxid {
		const enough = 64
		z.m.Logger().Warn("the size of a semaphore is not a number; going by the default",
			zap.String("path", z.path), zap.ByteString("data", data[:min(len(data), enough)]), zap.Int("default", z.n))
	}
	return z.n
}

// tooMany returns an error if n is more than the size. A size of 0 is no error: an
// operator has stopped the semaphore, and requests wait.
func tooMany(n, size int) error {
	if n > size && size > 0 {
		return fmt.Errorf("%w: %d units requested, but the semaphore has %d", ErrTooMany, n, size)
	}
	return nil
}
