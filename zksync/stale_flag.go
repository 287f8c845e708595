package zksync

import (
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// A staleFlag reports whether data that was read has changed since. A nil flag is
// always tripped.
type staleFlag struct {
	watch *session.Watch
	stale atomic.Bool
}

// newStaleFlag has a watch notify b when it fires.
func newStaleFlag(w *session.Watch, b *broadcast) *staleFlag {
	f := &staleFlag{watch: w}
	w.Notify(func(zk.Event) {
		f.stale.Store(true)
		b.notify()
	})
	return f
}

func (f *staleFlag) isStale() bool { return f == nil || f.stale.Load() }

// markStale makes the next look read the data again, even if nothing has changed.
func (f *staleFlag) markStale() {
	if f != nil {
		f.stale.Store(true)
	}
}

func (f *staleFlag) stopWatch() {
	if f != nil {
		f.watch.Stop()
	}
}
