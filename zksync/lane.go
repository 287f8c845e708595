package zksync

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// A lane is one directory of messages.
type lane struct {
	name    string // in the queue's directory; empty for that itself
	key     int64
	since   int64 // when it was first listed, in milliseconds since 1970
	waiting backlog
	czxid   int64 // of the directory, 0 before it was listed
	life    *session.Watch
	remade  atomic.Bool // the directory was deleted, and there may be another one
	guarded atomic.Bool // a watch tells of the deletion of the directory, or claims go with it
	listing *tripwire
	kept    bool                // an attempt to remove the directory failed
	skipped map[string]struct{} // the names of messages that cannot be read or removed
}

// mayBeRemade reports whether a name of the lane may stand for another message by now:
// the directory was deleted, or no watch would report its deletion.
func (l *lane) mayBeRemade() bool { return l.remade.Load() || !l.guarded.Load() }

// laneAge is how long the lane of a past time is kept, for producers with a clock
// behind ours.
const laneAge = time.Minute

// over is when a lane of a DelayQueue is to be removed, in milliseconds since 1970. A lane
// that appears when its time is over stays for laneAge from then on: a producer, whose
// clock is behind or whose Put has waited for a connection, has made the lane and is about
// to put a message into it.
func (l *lane) over() int64 {
	return max(l.key+laneWidth.Milliseconds(), l.since) + laneAge.Milliseconds()
}

// A ref names a message.
type ref struct {
	lane *lane
	item
}

// claimName is the name of the claim on a message, in the one directory that all
// lanes have in common.
func (r ref) claimName() string {
	if r.lane.name == "" {
		return r.name
	}
	return r.lane.name + "-" + r.name
}

// A tripwire reports whether data that was read has changed since. A nil tripwire is
// always tripped.
type tripwire struct {
	watch   *session.Watch
	tripped atomic.Bool
}

// lay has a watch ring the bell when it fires.
func lay(w *session.Watch, b *bell) *tripwire {
	t := &tripwire{watch: w}
	w.Notify(func(zk.Event) {
		t.tripped.Store(true)
		b.ring()
	})
	return t
}

func (t *tripwire) isTripped() bool { return t == nil || t.tripped.Load() }

// trip makes the next look read the data again, even if nothing has changed.
func (t *tripwire) trip() {
	if t != nil {
		t.tripped.Store(true)
	}
}

func (t *tripwire) remove() {
	if t != nil {
		t.watch.Stop()
	}
}

// A bell wakes all goroutines that wait for it. ring does not block.
type bell struct {
	mu   sync.Mutex
	rung chan struct{}
}

// listen returns a channel that is closed when the bell next rings. Call listen
// before you check the condition that you wait for.
func (b *bell) listen() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

// claims says whether a claim of that name is on a message of the lane.
func (l *lane) claims(name string) bool {
	if l.name == "" {
		return true
	}
	return strings.HasPrefix(name, l.name+"-")
}
