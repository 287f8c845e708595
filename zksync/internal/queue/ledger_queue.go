package queue

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// start starts changes, and those that wait for a claim. Each has an outcome when its channel
// done is closed.
func (l *ledger) start(changes ...*change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.usable.Err() != nil {
		finishAll(changes, context.Cause(l.usable))
		return
	}
	l.queued = append(l.queued, changes...)
	l.deferred = false
	if !l.running && len(l.queued) > 0 {
		l.running = true
		// Not spawn, which does nothing after Close has begun: the changes of calls under way
		// must still get their outcomes. Close waits for these calls, so wg is not zero here.
		l.v.life.wg.Go(l.run)
	}
}

// startWithClaim starts a removal together with the next claim, or after a time: one transaction
// costs the servers less than two.
func (l *ledger) startWithClaim(c *change, within time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.usable.Err() != nil {
		c.finish(context.Cause(l.usable))
		return
	}
	l.deferred = l.deferred || len(l.queued) == 0
	l.queued = append(l.queued, c)
	if l.due == nil {
		l.due = time.AfterFunc(within, func() { l.start() })
	}
}

func (l *ledger) run() {
	for {
		l.awaitArrivals()
		batch := l.nextBatch()
		if len(batch) == 0 {
			return
		}
		if left, err := l.carryOut(batch); err != nil {
			l.fail(left, err)
		}
	}
}

// fewYields is the number of times in a row that awaitArrivals may see no new change.
const fewYields = 10

// awaitArrivals yields while goroutines start changes: a transaction with many changes
// costs the servers little more than one with a single change.
func (l *ledger) awaitArrivals() {
	for n, quiet := 0, 0; quiet < fewYields && n < maxChanges; quiet++ {
		l.mu.Lock()
		now := len(l.queued)
		l.mu.Unlock()
		if now != n {
			n, quiet = now, 0
		}
		runtime.Gosched()
	}
}

// nextBatch takes changes for the next transaction.
func (l *ledger) nextBatch() []*change {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, size := 0, 0
	if l.deferred {
		l.running = false
		return nil
	}
	if l.due != nil {
		l.due.Stop()
		l.due = nil
	}
	for n < len(l.queued) && n < maxChanges {
		if size += l.queued[n].size; n > 0 && size > maxChangeBytes {
			break
		}
		n++
	}
	batch := slices.Clone(l.queued[:n])
	// A claim may take the room that removals of the batch make.
	slices.SortStableFunc(batch, claimsLast)
	// The run ends under the mutex, so that the next start sees that it must start another.
	if l.queued = l.queued[n:]; n == 0 {
		l.running, l.queued = false, nil
	}
	return batch
}

// fail ends the use of the ledger, and the changes of a batch and of the queue.
func (l *ledger) fail(batch []*change, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Under the mutex: start queues no change after this, and so each change has an outcome.
	// Before the outcomes: by usable, a caller tells a lost ledger from a removed message.
	l.end(why)
	finishAll(batch, why)
	finishAll(l.queued, why)
	l.queued = nil
}

// gone ends the use of the ledger, which another client has deleted: other consumers may have the
// messages in it.
func (l *ledger) gone() { l.fail(nil, fmt.Errorf("%w: %s", session.ErrRemoved, l.path)) }
