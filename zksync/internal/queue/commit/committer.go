package commit

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// The number of times in a row that awaitArrivals may see no new entry.
const (
	fewYields  = 3
	manyYields = 100
)

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

	// For the transactions of NewCreate: NumberOf returns the sequence number in the name
	// of a message, and MakeDir creates a missing directory.
	NumberOf func(name string) (seq int32, ok bool)
	MakeDir  func(ctx context.Context, s *session.Session, path string) error

	m          *session.Manager
	sender     sender
	life       context.Context // ends when Close waits no longer
	end        context.CancelCauseFunc
	wg         sync.WaitGroup
	open       context.Context         // ends when Close begins; its cause refuses entries
	beginClose context.CancelCauseFunc // under mu

	// waiting is the number of entries without an outcome whose callers have not left. It
	// changes under mu; awaitArrivals reads it often.
	waiting atomic.Int64

	mu        sync.Mutex
	entries   []*Entry           // in order; entries that are finished are removed later
	withdrawn int                // the number of entries that were withdrawn since all of these were removed last
	running   bool               // a goroutine is in run
	cancel    context.CancelFunc // ends the request under way when no caller waits
}

// New returns a Committer whose marker is in the directory markers. The first
// Committer of those with the same swept that creates its marker deletes the markers
// of processes that died.
func New(m *session.Manager, markers string, swept *atomic.Bool) *Committer {
	c := &Committer{m: m, Gate: openGate{}}
	// A request must outlive its callers: its answer tells whether their transactions have
	// happened.
	c.life, c.end = context.WithCancelCause(context.Background())
	c.open, c.beginClose = context.WithCancelCause(c.life)
	c.sender = sender{c: c, marker: marker{c: c, dir: markers, swept: swept}}
	return c
}

// Start starts transactions without waiting for them. They happen in order, and each of
// them only if the transactions before it have happened.
func (c *Committer) Start(txs ...Tx) []*Entry {
	entries := make([]*Entry, len(txs))
	var last *Entry
	for i, t := range txs {
		if last != nil {
			t.After = last
		}
		last = &Entry{Tx: t, c: c, done: make(chan struct{})}
		entries[i] = last
	}
	c.enqueue(entries...)
	return entries
}

func (c *Committer) enqueue(entries ...*Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Before withdrawLocked, which counts the callers out again.
	c.waiting.Add(int64(len(entries)))
	if why := context.Cause(c.open); why != nil {
		c.withdrawLocked(why, entries...)
		return
	}
	c.entries = append(c.entries, entries...)
	if !c.running && len(entries) > 0 {
		// Under mu: Close ends open before it waits, so wg.Go never runs beside Wait.
		c.running = true
		c.wg.Go(c.run)
	}
}

// withdrawLocked ends entries with the error why, unless they happen by a request that
// was sent; c.mu is held.
func (c *Committer) withdrawLocked(why error, entries ...*Entry) {
	for _, e := range entries {
		switch {
		case !e.sent:
			e.finishLocked(why)
			c.withdrawn++
		case e.withdrawn == nil:
			// The outcome of an entry that was sent is not known before the answer. If the entry
			// has not happened, markUnsent ends it.
			e.withdrawn = why
		}
	}
	// An entry that waits for room or for a connection, for hours perhaps, must not keep the data of all later ones that
	// have been withdrawn.
	if c.withdrawn > len(c.entries)/2 {
		c.entries = slices.DeleteFunc(c.entries, func(e *Entry) bool { return e.finished })
		c.withdrawn = 0
	}
}

// WithdrawAfter withdraws entries after d, with the cause why, unless stop is called
// before. Entries that are under way then may still happen, and are not sent again after a
// refusal. If d is 0, WithdrawAfter does nothing.
func (c *Committer) WithdrawAfter(d time.Duration, why error, entries ...*Entry) (stop func()) {
	if d == 0 {
		return func() {}
	}
	// The ctx of the caller has no part in the time limit: the caller waits under it.
	bounded, cancel := context.WithTimeoutCause(context.Background(), d, why)
	undo := context.AfterFunc(bounded, func() {
		why := Cancelled(bounded, c.m, c.Gate)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.withdrawLocked(why, entries...)
	})
	return func() {
		// In this order: the end of bounded would start the withdrawal.
		undo()
		cancel()
	}
}

// Cancelled returns the error of a caller whose ctx has ended, with the reason why its request waits:
// for a gate, which may be nil, or for a server.
func Cancelled(ctx context.Context, m *session.Manager, gate Gate) error {
	if gate != nil && m.State() == session.Connected {
		if reason := gate.Waiting(); reason != nil {
			return session.CancelledWaiting(ctx, fmt.Errorf("waiting %w", reason))
		}
	}
	return m.Cancelled(ctx)
}

// callerLeftLocked notes that one caller less waits; c.mu is held.
func (c *Committer) callerLeftLocked() {
	// The request may wait for room or for a connection, and no caller would learn of it. send
	// does not give up a request that was sent.
	if c.waiting.Add(-1) == 0 && c.cancel != nil {
		c.cancel()
	}
}

// run carries out entries until none is left.
func (c *Committer) run() {
	c.sender.limit, c.sender.repairs, c.sender.undone = maxBatch, 0, 0
	for {
		c.awaitArrivals()
		ctx, cancel := c.nextRequest()
		if ctx == nil {
			return
		}
		c.sender.carryOut(ctx)
		cancel()
	}
}

// awaitArrivals yields while goroutines start transactions: a request with many
// transactions costs the servers little more than a request with one. The callers of
// the last request get a little more time, which takes some microseconds if they start
// no transaction.
func (c *Committer) awaitArrivals() {
	for n, quiet := 0, 0; ; quiet++ {
		if now := int(c.waiting.Load()); now != n {
			n, quiet = now, 0
		}
		if n >= maxBatch || quiet >= fewYields && n >= c.sender.served || quiet >= manyYields {
			return
		}
		runtime.Gosched()
	}
}

// nextRequest returns a context that ends when no caller waits. If no caller waits now, it
// returns nil and ends the run: then every entry has an outcome, since no entry is sent.
func (c *Committer) nextRequest() (context.Context, context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Under mu: enqueue either counts its entries before this look, or starts another run.
	if c.waiting.Load() == 0 {
		c.entries, c.cancel, c.running = nil, nil, false
		return nil, nil
	}
	ctx, cancel := context.WithCancel(c.life)
	c.cancel = cancel
	return ctx, cancel
}

// Close refuses entries that were not sent yet with the error why, and waits until ctx
// ends for the outcomes of the others, which are not sent again after a refusal. It
// deletes the marker, and returns when no goroutine of the Committer runs.
func (c *Committer) Close(ctx context.Context, why error) {
	c.mu.Lock()
	c.beginClose(why)
	c.withdrawLocked(why, c.entries...)
	c.mu.Unlock()
	defer context.AfterFunc(ctx, func() { c.end(context.Cause(ctx)) })()
	c.wg.Wait()
	c.end(why)
	// Behind wg.Wait: no request needs the marker to learn its outcome any more.
	c.sender.marker.remove(ctx)
}
