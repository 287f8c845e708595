package zksync

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/session"
)

const (
	maxBatch     = 128
	maxBatchSize = 512 << 10

	// How often in a row nothing may come before it is no longer waited for.
	fewYields  = 3
	manyYields = 100

	// closePatience is how long Close waits for servers that cannot be reached.
	closePatience = 5 * time.Second
)

// errSkipped is the end of an entry because one before it in its chain did not
// happen. It stays within the package.
var errSkipped = errors.New("zksync: not tried, because one before it failed")

// A committer carries out transactions in the order in which they were handed
// in: exactly once, over lost connections and sessions, and many in one request.
// Each request begins with a write to a znode of the committer's own, the marker,
// at the version that the last one left; so that a request may be repeated on any
// connection and under any session, and when it finds the next version, has
// happened before.
//
// One request at a time is under way, and whatever comes meanwhile goes out in the
// next. A goroutine runs only while there is something to do.
type committer struct {
	m      *session.Manager
	marker marker
	gate   gate
	// renew is called where a sequential create finds no number left in a
	// directory.
	renew     func(ctx context.Context, s *session.Session, dir string) error
	makeDir   func(ctx context.Context, s *session.Session, path string) error
	life      context.Context // ends when nothing is waited for any more
	end       context.CancelCauseFunc
	wg        sync.WaitGroup
	stopSweep context.CancelFunc
	served    int // entries of the last batch; the runner's

	arrived atomic.Int64 // len(waiting), for gather, which looks often
	marked  atomic.Int64 // marker.number; see tx.read

	mu      sync.Mutex
	waiting []*entry
	current *batch
	running bool
	closed  bool
}

// newCommitter returns a committer whose marker is in a directory. Whichever of
// those with the same swept makes its marker first sweeps that directory.
func newCommitter(m *session.Manager, markers string, swept *atomic.Bool) *committer {
	c := &committer{m: m, marker: marker{dir: markers, swept: swept, log: m.Logger()}, gate: open{}}
	c.makeDir = func(ctx context.Context, s *session.Session, path string) error { return s.MakeDir(ctx, path) }
	c.life, c.end = context.WithCancelCause(context.Background())
	sweeping, stop := context.WithCancel(c.life)
	c.stopSweep = stop
	c.marker.background = func(f func(context.Context)) { c.wg.Go(func() { f(sweeping) }) }
	return c
}

// waitAll waits for all of some entries, in order. If ctx ends before, none of them
// is sent any more.
func (c *committer) waitAll(ctx context.Context, entries []*entry) []error {
	errs := make([]error, len(entries))
	for i, e := range entries {
		select {
		case <-e.done:
			errs[i] = e.err
		case <-ctx.Done():
			copy(errs[i:], c.leave(c.cancelled(ctx), entries[i:]...))
			return errs
		}
	}
	return errs
}

// withdraw ends those entries that were not sent yet.
func (c *committer) withdraw(why error, entries ...*entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range entries {
		if !e.sent {
			c.finishLocked(e, why)
		}
	}
}

// start hands in transactions without waiting for them. Those that are bound to
// a session, because they speak of its ephemerals, happen under it or not at all.
// Those of a chain go in its order.
func (c *committer) start(on *session.Session, ch *chain, txs ...tx) []*entry {
	entries := make([]*entry, len(txs))
	for i, t := range txs {
		entries[i] = c.entry(on, ch, t)
	}
	c.enqueue(entries...)
	return entries
}

// startOne is start for a single transaction.
func (c *committer) startOne(on *session.Session, t tx) *entry {
	e := c.entry(on, nil, t)
	c.enqueue(e)
	return e
}

func (c *committer) entry(on *session.Session, ch *chain, t tx) *entry {
	return &entry{tx: t, c: c, on: on, chain: ch, done: make(chan struct{})}
}

func (c *committer) enqueue(entries ...*entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		for _, e := range entries {
			c.finishLocked(e, ErrQueueClosed)
		}
		return
	}
	c.waiting = append(c.waiting, entries...)
	c.arrived.Store(int64(len(c.waiting)))
	if !c.running && len(c.waiting) > 0 {
		c.running = true
		c.wg.Go(c.run)
	}
}

func (c *committer) run() {
	for {
		c.gather()
		b := c.next()
		if b == nil {
			return
		}
		c.served = len(b.entries)
		c.settle(b)
	}
}

// gather lets those who are about to hand something in do so: a request costs
// the servers hardly more with many transactions in it than with one. Those whom
// the last batch has served are waited for a little longer, which takes some
// microseconds if they don't come.
func (c *committer) gather() {
	for n, quiet := 0, 0; ; quiet++ {
		if now := int(c.arrived.Load()); now != n {
			n, quiet = now, 0
		}
		if n >= maxBatch || quiet >= fewYields && n >= c.served || quiet >= manyYields {
			return
		}
		runtime.Gosched()
	}
}

// next takes a batch from what waits, or none and ends the run.
func (c *committer) next() *batch {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := &batch{entries: make([]*entry, 0, min(len(c.waiting), maxBatch))}
	size, taken := 0, 0
	for _, e := range c.waiting {
		if e.over {
			taken++
			continue
		}
		if len(b.entries) > 0 && (len(b.entries) == maxBatch || size+e.size > maxBatchSize || e.on != b.on) {
			break
		}
		taken++
		size += e.size
		b.on = e.on
		e.batch = b
		b.entries = append(b.entries, e)
	}
	clear(c.waiting[:taken])
	if taken == len(c.waiting) {
		c.waiting = c.waiting[:0]
	} else {
		c.waiting = c.waiting[taken:]
	}
	c.arrived.Store(int64(len(c.waiting)))
	c.current = b
	if len(b.entries) == 0 {
		c.waiting, c.current, c.running = nil, nil, false
		return nil
	}
	b.n = len(b.entries)
	b.ctx, b.cancel = context.WithCancelCause(c.life)
	return b
}

// close refuses what was not sent yet, and waits for what was, as long as ctx
// lasts. It removes the marker, and returns when nothing of the committer runs any
// more.
func (c *committer) close(ctx context.Context) {
	c.stopSweep()
	c.mu.Lock()
	c.closed = true
	waiting := c.waiting
	if c.current != nil {
		waiting = append(append([]*entry(nil), c.current.entries...), waiting...)
	}
	for _, e := range waiting {
		if !e.sent {
			c.finishLocked(e, ErrQueueClosed)
		}
	}
	c.mu.Unlock()
	defer context.AfterFunc(ctx, func() { c.end(context.Cause(ctx)) })()
	c.wg.Wait()
	c.end(ErrQueueClosed)
	c.marker.remove(ctx, c.m)
}
