package queue

import (
	"context"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/session"
)

const (
	firstPrefetch = 8

	// prefetchBytes limits the data of the messages that wait for the receiver. A stream
	// that has reached it claims no further message.
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
	limit   int // see Config.Prefetch
	wakeUps chan struct{}

	mu             sync.Mutex
	size           int           // how many messages may be claimed and not settled at present
	waiting        int           // the number of messages that are claimed and not received
	waitingBytes   int           // the data of these messages
	receiverWaited bool          // there was no message for the receiver
	full           bool          // the last claims were as many as there was room for
	work           time.Duration // the time of the receiver for one message, smoothed
}

// reset makes the window small, until the receiver shows that it is fast.
func (w *prefetchWindow) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.size, w.waiting, w.waitingBytes, w.receiverWaited, w.full = min(firstPrefetch, w.limit), 0, 0, false, false
}

// wake makes waitForRoom check again.
func (w *prefetchWindow) wake() {
	select {
	case w.wakeUps <- struct{}{}:
	default:
	}
}

// waitForRoom waits until there is room for at least half of the window, and returns the
// number of messages that there is room for. unsettled counts the claims.
func (w *prefetchWindow) waitForRoom(ctx context.Context, unsettled func() int) (int, error) {
	for {
		// Claims of single messages would multiply the transactions.
		if room, size := w.room(unsettled); room > 0 && room >= (size+1)/2 {
			return room, nil
		}
		select {
		case <-w.wakeUps:
		case <-ctx.Done():
			return 0, session.Cancelled(ctx)
		}
	}
}

func (w *prefetchWindow) room(unsettled func() int) (room, size int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// A larger window helps only if the queue had more messages than there was room for,
	// and the receiver was ready for them.
	if w.receiverWaited && w.full {
		w.size = min(2*w.size, w.limit)
	}
	w.receiverWaited = false
	size = w.size
	if w.work > 0 {
		// Messages ahead of a slow receiver would wait here while other consumers are idle.
		size = min(size, max(firstPrefetch, int(prefetchTime/w.work)))
	}
	// The limit includes the messages that were received and are not settled.
	size = min(size, w.limit-(unsettled()-w.waiting))
	if w.waitingBytes >= prefetchBytes {
		return 0, size
	}
	return size - w.waiting, size
}

// batch returns how many messages to claim together.
func (w *prefetchWindow) batch(most, free, consumers int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if consumers <= 1 {
		return most
	}
	// Half of an equal share: consumers whose claims come later find messages, too.
	fair := (free + 2*consumers - 1) / (2 * consumers)
	if w.work > 0 && w.work < quickWork {
		fair = max(fair, minBatch)
	}
	return max(1, min(most, fair))
}

// claimed notes that messages wait for the receiver. full says that there was room for no
// more.
func (w *prefetchWindow) claimed(found []*Delivery, full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.full = full
	w.waiting += len(found)
	for _, d := range found {
		w.waitingBytes += len(d.Data)
	}
}

// starve notes that there is no message for the receiver. waited says that the receiver
// waits for one.
func (w *prefetchWindow) starve(waited bool) {
	w.mu.Lock()
	w.receiverWaited = waited
	w.mu.Unlock()
	w.wake()
}

// received notes that the receiver has taken a message, which took a time.
func (w *prefetchWindow) received(d *Delivery, took time.Duration) {
	w.mu.Lock()
	w.waiting--
	w.waitingBytes -= len(d.Data)
	// An average over about eight messages, so that one slow message does not shrink the window.
	w.work += (took - w.work) / 8
	w.mu.Unlock()
	w.wake()
}
