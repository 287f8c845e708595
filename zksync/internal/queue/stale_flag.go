package queue

import (
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// A staleFlag reports whether data that was read has changed since. A nil flag is always
// stale.
type staleFlag struct {
	watch *session.Watch
	fired atomic.Bool // the watch has fired
	stale atomic.Bool
}

// newStaleFlag returns a flag that becomes stale when w fires, but not before a time. It notifies b then.
func newStaleFlag(w *session.Watch, b *broadcast, from time.Time) *staleFlag {
	f := &staleFlag{watch: w}
	fire := func() {
		// In this order: a goroutine that b wakes must find the flag stale.
		f.stale.Store(true)
		b.notify()
	}
	w.Notify(func(zk.Event) {
		f.fired.Store(true)
		if rest := time.Until(from); rest > 0 {
			time.AfterFunc(rest, fire)
		} else {
			fire()
		}
	})
	return f
}

func (f *staleFlag) isStale() bool { return f == nil || f.stale.Load() }

// hasFired reports whether the watch has fired, even if the flag is not stale yet.
func (f *staleFlag) hasFired() bool { return f != nil && f.fired.Load() }

// markStale makes the flag stale, even if nothing has changed.
func (f *staleFlag) markStale() {
	if f != nil {
		f.stale.Store(true)
	}
}

// stopWatch stops the watch of a flag that is not needed any more.
func (f *staleFlag) stopWatch() {
	if f != nil {
		f.watch.Stop()
	}
}

// replace stops the watch of the flag, and returns the flag of another watch.
func (f *staleFlag) replace(w *session.Watch, b *broadcast) *staleFlag {
	f.stopWatch()
	return newStaleFlag(w, b, time.Time{})
}
