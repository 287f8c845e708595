package zkserver

import (
	"sync"
	"sync/atomic"
)

const (
	// keptBuffer is the maximum size of the buffer that a connection keeps for its next frames.
	keptBuffer = 64 << 10
	// smallBuffer is the size of the buffer that an idle connection keeps for its answers.
	smallBuffer = 4 << 10
	// keptSegments is the maximum capacity of a segment list that is kept for reuse.
	keptSegments = 256
)

// An outQueue holds the frames that are queued for a connection. push never blocks, because the
// goroutine that commits a write must not wait for a slow reader of watch events. Instead limits.go
// closes a connection with too many queued bytes.
type outQueue struct {
	wake  chan struct{} // has a buffer of one
	room  chan struct{} // has a buffer of one; signals that the writer has written something
	total *atomic.Int64 // queued bytes of all connections

	mu     sync.Mutex
	ready  []segment
	held   []segment // frames that were pushed while an earlier reply was delayed
	corked bool
	ended  bool // frames are neither written nor kept
	bytes  int  // bytes that were pushed and not yet written
	latest int  // length of the latest pushed frame
	spare  []byte
}

func newOutQueue(total *atomic.Int64) outQueue {
	return outQueue{wake: make(chan struct{}, 1), room: make(chan struct{}, 1), total: total}
}

// segment is a run of bytes to write. A watch event that faults strike has its own segment: hits
// are the faults, and op is the event's entry in the log.
type segment struct {
	b    []byte
	hits []*Injection
	op   uint64
}

// push queues a copy of frame. If wake is false, the writer is not woken before the next kick, so
// that several answers go out in one write.
func (q *outQueue) push(frame []byte, wake bool) { q.pushEvent(frame, nil, 0, wake) }

func (q *outQueue) pushEvent(frame []byte, hits []*Injection, op uint64, wake bool) {
	q.mu.Lock()
	list := &q.ready
	if q.corked {
		list = &q.held
	}
	q.add(list, frame, hits, op)
	q.mu.Unlock()
	if wake {
		q.kick()
	}
}

func (q *outQueue) add(list *[]segment, frame []byte, hits []*Injection, op uint64) {
	if q.ended {
		return
	}
	q.bytes, q.latest = q.bytes+len(frame), len(frame)
	q.total.Add(int64(len(frame)))
	// Small frames share a segment, so that a burst of answers takes few writes. An event that a
	// fault strikes has a segment of its own, because the writer may have to drop only this event.
	if n := len(*list); n > 0 && hits == nil && (*list)[n-1].hits == nil {
		if last := &(*list)[n-1]; len(last.b)+len(frame) <= keptBuffer {
			last.b = append(room(last.b, len(frame)), frame...)
			return
		}
	}
	// The spare buffer belongs to the segment until the writer recycles it.
	b := q.spare
	q.spare = nil
	*list = append(*list, segment{append(room(b[:0], len(frame)), frame...), hits, op})
}

func (q *outQueue) kick() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// cork holds back all frames that are pushed from now on, so that no frame overtakes a reply that a
// fault delays.
func (q *outQueue) cork() {
	q.mu.Lock()
	q.corked = true
	q.mu.Unlock()
}

// uncork queues the reply, unless it is nil, and then the frames that were held back.
func (q *outQueue) uncork(reply []byte) {
	q.mu.Lock()
	q.corked = false
	if reply != nil {
		q.add(&q.ready, reply, nil, 0)
	}
	if !q.ended {
		q.ready = append(q.ready, q.held...)
	}
	q.held = nil
	q.mu.Unlock()
	q.kick()
}

// take appends the queued segments to batch and empties the queue.
func (q *outQueue) take(batch []segment) []segment {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch = append(batch, q.ready...)
	clear(q.ready)
	q.ready = q.ready[:0]
	if cap(q.ready) > keptSegments {
		q.ready = nil
	}
	return batch
}

func (q *outQueue) recycle(b []byte) {
	switch {
	case cap(b) == keptBuffer:
		bigBuffers.Put((*[keptBuffer]byte)(b[:keptBuffer]))
	case cap(b) <= 2*smallBuffer: // append may have rounded the capacity up
		q.mu.Lock()
		q.spare = b
		q.mu.Unlock()
	}
}

// bigBuffers pools buffers of keptBuffer bytes, which connections use during bursts; an idle
// connection keeps at most smallBuffer.
var bigBuffers sync.Pool

// room returns b with capacity for n more bytes if a pooled buffer suffices.
func room(b []byte, n int) []byte {
	need := len(b) + n
	if need <= cap(b) || need <= smallBuffer || need > keptBuffer {
		return b // append grows b itself
	}
	var big []byte
	if p, ok := bigBuffers.Get().(*[keptBuffer]byte); ok {
		big = p[:0]
	} else {
		big = make([]byte, 0, keptBuffer)
	}
	return append(big, b...)
}

// waiting returns the number of bytes that were pushed and not yet written.
func (q *outQueue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}

// over reports whether more than limit bytes and more than one frame are queued.
func (q *outQueue) over(limit int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes > limit && q.bytes > q.latest
}

// wrote records that n bytes were written.
func (q *outQueue) wrote(n int) {
	q.mu.Lock()
	if !q.ended {
		q.bytes -= n
		q.total.Add(-int64(n))
	}
	q.mu.Unlock()
	select {
	case q.room <- struct{}{}:
	default:
	}
}

// end drops all queued frames, and all frames that are pushed later.
func (q *outQueue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.total.Add(-int64(q.bytes))
	q.ended, q.bytes, q.ready, q.held, q.spare = true, 0, nil, nil, nil
}

func (q *outQueue) isEnded() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ended
}
