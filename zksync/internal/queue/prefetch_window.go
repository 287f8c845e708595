package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	firstPrefetch = 8

	// prefetchBytes limits the data of the messages that wait for the receiver. A stream
	// that has reached it claims and reads no further message.
	prefetchBytes = 16 << 20

	// prefetchTime is the work that the messages ahead of the receiver may stand for.
	prefetchTime = 250 * time.Millisecond

	// minBatch is the least number of messages that a consumer claims together where the
	// work on one takes less than quickWork.
	minBatch  = 16
	quickWork = time.Millisecond
)

// A prefetchWindow limits the messages that a stream claims ahead of its receiver. The
// window grows as long as the receiver is faster than the stream. A slow receiver
// therefore does not keep messages from other consumers.
type prefetchWindow struct {
	changed   broadcast    // there may be room for claims, or for data
	claimTime atomic.Int64 // the time of the last attempt to claim

	mu             sync.Mutex
	limit          int           // the most claims: Config.Prefetch, or fewer where the ledger has no room for their names
	size           int           // how many messages may be claimed and not settled at present
	waiting        int           // the number of messages that are claimed and not received
	read           int           // how many of these messages were read
	waitingBytes   int           // the data of the messages that were read
	receiverWaited bool          // there was no message for the receiver
	full           bool          // the last claims were as many as there was room for
	work           time.Duration // the time of the receiver for one message, smoothed
}

// reset makes the window small, until the receiver shows that it is fast.
func (w *prefetchWindow) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	// w.work stays, because the receiver is the same under the next session.
	w.size, w.waiting, w.read, w.waitingBytes, w.receiverWaited, w.full = firstPrefetch, 0, 0, 0, false, false
}

// setLimit sets the most claims.
func (w *prefetchWindow) setLimit(n int) {
	w.mu.Lock()
	w.limit = n
	w.mu.Unlock()
	w.changed.notify()
}

// isFull reports whether there are as many claims as the limit allows.
func (w *prefetchWindow) isFull(claims int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return claims >= w.limit
}

// allReceived reports whether no message waits for the receiver.
func (w *prefetchWindow) allReceived() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting == 0
}

// waitForRoom waits until there is room for a part of the window. unsettled counts the
// claims. It calls blocked before it waits.
func (w *prefetchWindow) waitForRoom(ctx context.Context, unsettled func() int, blocked func()) error {
	return w.changed.wait(ctx, func() bool {
		room, least := w.room(unsettled())
		if room > 0 && room >= least {
			return true
		}
		blocked()
		return false
	})
}

// room returns how many messages there is room for beside unsettled claims, and the least room for a claim.
func (w *prefetchWindow) room(unsettled int) (room, least int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// A larger window helps only if the queue had more messages than there was room for,
	// and the receiver was ready for them.
	if w.receiverWaited && w.full {
		// The window grows at once to the size of the largest claim: w.work limits it for a slow receiver.
		// Larger windows let claims run ahead of the removals that could share their transactions.
		w.size = min(max(2*w.size, maxClaims), w.limit)
	}
	w.receiverWaited = false
	size := w.size
	if w.work > 0 {
		// Messages ahead of a slow receiver would wait here while other consumers are idle.
		size = min(size, max(firstPrefetch, int(prefetchTime/w.work)))
	}
	// The limit includes the messages that were received and are not settled.
	size = min(size, w.limit-(unsettled-w.waiting))
	// Claims of single messages would multiply the transactions. Among several consumers,
	// one with many small claims would be faster than the others again and again.
	least = (size + 1) / 2
	if w.work*time.Duration(size) < time.Duration(w.claimTime.Load()) {
		// The other half would not keep the receiver busy during the claim.
		least = (3*size + 3) / 4
	}
	if w.waitingBytes >= prefetchBytes {
		return 0, least
	}
	return size - w.waiting, least
}

// batch returns how many messages to claim together.
func (w *prefetchWindow) batch(most, free, consumers int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if consumers <= 1 || most <= 0 {
		return max(0, most)
	}
	// Half of an equal share: consumers whose claims come later find messages, too.
	fair := (free + 2*consumers - 1) / (2 * consumers)
	if w.work > 0 && w.work < quickWork {
		fair = max(fair, minBatch)
	}
	return max(1, min(most, fair))
}

// waitForSpace waits until less than prefetchBytes of data wait for the receiver.
func (w *prefetchWindow) waitForSpace(ctx context.Context) error {
	return w.changed.wait(ctx, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.waitingBytes < prefetchBytes
	})
}

// claimed notes that messages were claimed. full says that there was room for no more.
func (w *prefetchWindow) claimed(n int, full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.full = full
	w.waiting += n
}

// noteRead notes which of n claimed messages wait for the receiver. The others are gone or
// skipped.
func (w *prefetchWindow) noteRead(found []*Delivery, n int) {
	w.mu.Lock()
	w.waiting -= n - len(found)
	w.read += len(found)
	for _, d := range found {
		w.waitingBytes += len(d.Data)
	}
	w.mu.Unlock()
	w.changed.notify()
}

// starve notes that there is no message for the receiver. waited says that the receiver
// waits for one.
func (w *prefetchWindow) starve(waited bool) {
	w.mu.Lock()
	// Messages that were read and are not here yet come without another claim.
	w.receiverWaited = waited && w.read == 0
	w.mu.Unlock()
	w.changed.notify()
}

// received notes that the receiver has taken a message, which took a time.
func (w *prefetchWindow) received(d *Delivery, took time.Duration) {
	w.mu.Lock()
	w.waiting--
	w.read--
	w.waitingBytes -= len(d.Data)
	// An average over about eight messages, so that one slow message does not shrink the window.
	w.work += (took - w.work) / 8
	w.mu.Unlock()
	w.changed.notify()
}

// expectsClaim reports whether the next claim is near: the receiver was ready for more messages than
// the first window has, and the queue had more at the last claim than there was room for.
func (w *prefetchWindow) expectsClaim() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.full && w.size > firstPrefetch
}
