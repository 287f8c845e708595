package commit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/session"
)

const (
	maxBatch     = 128
	maxBatchSize = 512 << 10

	// The number of times in a row that awaitArrivals may see no new entry.
	fewYields  = 3
	manyYields = 100
)

// errSkipped is the outcome of an entry whose chain has failed before it. It stays
// within the package.
var errSkipped = errors.New("zksync: not sent, because an earlier transaction of the chain failed")

// A Committer carries out transactions in the order in which they were started, each
// exactly once, over lost connections and sessions, and many in one request. Each
// request begins with a write to a znode of the Committer, the marker, at the version
// that the last request left. So a request may be repeated on any connection and under
// any session: a repetition that finds the next version has happened before.
//
// One request at a time is under way. Transactions that are started meanwhile go into
// the next request. A goroutine runs only while there are transactions.
type Committer struct {
	Gate Gate // admits entries
	// NumberOf returns the sequence number in the name of a message. It is nil if the
	// transactions create no messages.
	NumberOf func(name string) (seq int32, ok bool)
	// MakeDir creates a missing directory.
	MakeDir func(ctx context.Context, s *session.Session, path string) error

	m         *session.Manager
	marker    marker
	life      context.Context // ends when Close waits no longer
	end       context.CancelCauseFunc
	wg        sync.WaitGroup
	stopSweep context.CancelFunc
	served    int // the number of entries of the last batch; used by run alone

	arrivals atomic.Int64 // len(queued), for awaitArrivals, which reads it often
	epoch    atomic.Int64 // marker.number; see Tx.Epoch

	mu      sync.Mutex
	queued  []*Entry
	current *batch
	running bool
	closed  error // refuses entries; nil until Close
}

// New returns a Committer whose marker is in the directory markers. The first
// Committer of those with the same swept that creates its marker deletes the markers
// of processes that died.
func New(m *session.Manager, markers string, swept *atomic.Bool) *Committer {
	c := &Committer{m: m, marker: marker{dir: markers, swept: swept, log: m.Logger()}, Gate: openGate{}}
	c.MakeDir = func(ctx context.Context, s *session.Session, path string) error { return s.MakeDir(ctx, path) }
	c.life, c.end = context.WithCancelCause(context.Background())
	sweeping, stop := context.WithCancel(c.life)
	c.stopSweep = stop
	c.marker.background = func(f func(context.Context)) { c.wg.Go(func() { f(sweeping) }) }
	return c
}

// Epoch returns the present epoch. A new epoch begins when the Committer creates
// another marker.
func (c *Committer) Epoch() Epoch {
	if n := c.epoch.Load(); n > 0 {
		return Epoch(n)
	}
	return -1
}

// Start starts transactions without waiting for them. Transactions that are bound to a
// session, because they need its ephemerals, happen under that session or never. on is
// nil for the others. Transactions of a chain happen in the order of the chain.
func (c *Committer) Start(on *session.Session, ch *Chain, txs ...Tx) []*Entry {
	entries := make([]*Entry, len(txs))
	for i, t := range txs {
		entries[i] = c.newEntry(on, ch, t)
	}
	c.enqueue(entries...)
	return entries
}

// StartOne starts a single transaction; see Start.
func (c *Committer) StartOne(on *session.Session, t Tx) *Entry {
	e := c.newEntry(on, nil, t)
	c.enqueue(e)
	return e
}

func (c *Committer) newEntry(on *session.Session, ch *Chain, t Tx) *Entry {
	return &Entry{Tx: t, c: c, on: on, chain: ch, done: make(chan struct{})}
}

func (c *Committer) enqueue(entries ...*Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		for _, e := range entries {
			c.finishLocked(e, c.closed)
		}
		return
	}
	c.queued = append(c.queued, entries...)
	c.arrivals.Store(int64(len(c.queued)))
	if !c.running && len(c.queued) > 0 {
		c.running = true
		c.wg.Go(c.run)
	}
}

// WaitAll waits for the outcomes of entries, in order. If ctx ends before, entries that
// were not sent are withdrawn.
func (c *Committer) WaitAll(ctx context.Context, entries []*Entry) []error {
	errs := make([]error, len(entries))
	for i, e := range entries {
		select {
		case <-e.done:
			errs[i] = e.err
		case <-ctx.Done():
			copy(errs[i:], c.removeCallers(c.Cancelled(ctx), entries[i:]...))
			return errs
		}
	}
	return errs
}

// withdraw ends the entries that were not sent yet with the error why.
func (c *Committer) withdraw(why error, entries []*Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range entries {
		if !e.sent {
			c.finishLocked(e, why)
		}
	}
}

// WithdrawAfter withdraws the entries that are not sent after d, with the cause why, unless
// stop is called before. If d is 0, it does nothing.
func (c *Committer) WithdrawAfter(d time.Duration, why error, entries ...*Entry) (stop func()) {
	if d == 0 {
		return func() {}
	}
	// The ctx of the caller has no part in the time limit: the caller waits under it.
	bounded, cancel := context.WithTimeoutCause(context.Background(), d, why)
	undo := context.AfterFunc(bounded, func() { c.withdraw(c.Cancelled(bounded), entries) })
	return func() {
		undo()
		cancel()
	}
}

// Cancelled returns the error of a caller whose ctx has ended, with the reason why its
// entry waits.
func (c *Committer) Cancelled(ctx context.Context) error {
	if reason := c.Gate.Waiting(); reason != nil && c.m.State() == session.Connected {
		return session.CancelledWaiting(ctx, fmt.Errorf("waiting %w", reason))
	}
	return c.m.Cancelled(ctx)
}

// removeCallers detaches every caller from its entry and returns the error that each
// caller should report.
func (c *Committer) removeCallers(why error, entries ...*Entry) []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := make([]error, len(entries))
	for i, e := range entries {
		if !e.finished && !e.sent {
			c.finishLocked(e, why)
		}
		if e.finished {
			errs[i] = e.err
			continue
		}
		e.deserted = why
		errs[i] = unknown(why)
		e.batch.cancelIfDesertedLocked()
	}
	return errs
}

// finishLocked sets the outcome of an entry; c.mu is held.
func (c *Committer) finishLocked(e *Entry, err error) {
	if e.setLocked(err) {
		close(e.done)
		e.batch.cancelIfDesertedLocked()
	}
}

func (c *Committer) run() {
	for {
		c.awaitArrivals()
		b := c.nextBatch()
		if b == nil {
			return
		}
		c.served = len(b.entries)
		b.carryOut()
	}
}

// awaitArrivals yields while goroutines start transactions: a request with many
// transactions costs the servers little more than a request with one. The callers of
// the last batch get a little more time, which takes some microseconds if they start no
// transaction.
func (c *Committer) awaitArrivals() {
	for n, quiet := 0, 0; ; quiet++ {
		if now := int(c.arrivals.Load()); now != n {
			n, quiet = now, 0
		}
		if n >= maxBatch || quiet >= fewYields && n >= c.served || quiet >= manyYields {
			return
		}
		runtime.Gosched()
	}
}

// nextBatch takes a batch from the queued entries. If no entry is left, it returns nil
// and ends the run.
func (c *Committer) nextBatch() *batch {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := &batch{c: c, entries: make([]*Entry, 0, min(len(c.queued), maxBatch))}
	size, taken := 0, 0
	for _, e := range c.queued {
		if e.finished {
			taken++
			continue
		}
		if len(b.entries) > 0 && (len(b.entries) == maxBatch || size+e.Size > maxBatchSize || e.on != b.on) {
			break
		}
		taken++
		size += e.Size
		b.on = e.on
		e.batch = b
		b.entries = append(b.entries, e)
	}
	clear(c.queued[:taken])
	if taken == len(c.queued) {
		c.queued = c.queued[:0]
	} else {
		c.queued = c.queued[taken:]
	}
	c.arrivals.Store(int64(len(c.queued)))
	c.current = b
	if len(b.entries) == 0 {
		c.queued, c.current, c.running = nil, nil, false
		return nil
	}
	b.n = len(b.entries)
	b.ctx, b.cancel = context.WithCancelCause(c.life)
	return b
}

// Close refuses entries that were not sent yet with the error why, and waits until ctx
// ends for the outcomes of the others. It deletes the marker, and returns when no
// goroutine of the Committer runs.
func (c *Committer) Close(ctx context.Context, why error) {
	c.stopSweep()
	c.mu.Lock()
	c.closed = why
	queued := c.queued
	if c.current != nil {
		queued = append(append([]*Entry(nil), c.current.entries...), queued...)
	}
	for _, e := range queued {
		if !e.sent {
			c.finishLocked(e, why)
		}
	}
	c.mu.Unlock()
	defer context.AfterFunc(ctx, func() { c.end(context.Cause(ctx)) })()
	c.wg.Wait()
	c.end(why)
	c.marker.remove(ctx, c.m)
}
