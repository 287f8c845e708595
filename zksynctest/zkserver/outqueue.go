package zkserver

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// keptBuffer is the largest buffer a connection keeps for its next frames.
	keptBuffer = 64 << 10
	// smallBuffer is what a connection keeps for its answers while it is idle.
	smallBuffer = 4 << 10
	// keptSegments is how many segments a list has room for that is kept.
	keptSegments = 256
	// flushTime is how long a connection that the server closes tries to get rid
	// of what it has queued.
	flushTime = 100 * time.Millisecond
)

// An outQueue holds the frames that wait to be written to a connection. A push never waits: the
// goroutine that commits a write must not wait for a slow reader of watch events. The
// connection is closed instead when too much waits: see limits.go.
type outQueue struct {
	wake  chan struct{} // has room for one
	room  chan struct{} // has room for one: some of the queue was written
	total *atomic.Int64 // bytes that wait in all queues

	mu     sync.Mutex
	ready  []segment
	held   []segment // what came while the reply before it was delayed
	corked bool
	ended  bool // nothing is written any more, or kept
	bytes  int  // that were pushed and not written
	latest int  // bytes that were pushed last
	spare  []byte
}

func newOutQueue(total *atomic.Int64) outQueue {
	return outQueue{wake: make(chan struct{}, 1), room: make(chan struct{}, 1), total: total}
}

// segment is bytes to write; if they are a watch event, after the faults that
// strike it, which is noted in entry op of the log.
type segment struct {
	b    []byte
	hits []*Injection
	op   uint64
}

// push queues a copy of frame. Without wake the writer is left asleep until the
// next kick, which lets a reader answer all it has before anything is written.
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
	if n := len(*list); n > 0 && hits == nil && (*list)[n-1].hits == nil {
		if last := &(*list)[n-1]; len(last.b)+len(frame) <= keptBuffer {
			last.b = append(room(last.b, len(frame)), frame...)
			return
		}
	}
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

// cork holds back all that is pushed from now on, so that nothing overtakes a
// reply that a fault delays.
func (q *outQueue) cork() {
	q.mu.Lock()
	q.corked = true
	q.mu.Unlock()
}

// uncork queues the reply, if it was not lost, and then what was held back.
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

// take moves what is ready to batch.
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
	case cap(b) <= 2*smallBuffer: // append may have rounded it up
		q.mu.Lock()
		q.spare = b
		q.mu.Unlock()
	}
}

// bigBuffers are of keptBuffer each, and belong to connections that have much to
// write at the moment; a connection of its own keeps at most smallBuffer.
var bigBuffers sync.Pool

// room returns b with capacity for n more bytes.
func room(b []byte, n int) []byte {
	need := len(b) + n
	if need <= cap(b) || need <= smallBuffer || need > keptBuffer {
		return b // append knows what to do
	}
	var big []byte
	if p, ok := bigBuffers.Get().(*[keptBuffer]byte); ok {
		big = p[:0]
	} else {
		big = make([]byte, 0, keptBuffer)
	}
	return append(big, b...)
}

// waiting is how many bytes were pushed and not written yet.
func (q *outQueue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}

// over reports whether more than limit bytes wait, and more than one frame.
func (q *outQueue) over(limit int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes > limit && q.bytes > q.latest
}

// wrote notes that n bytes were written.
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

// end drops all that waits, and all that is pushed from now on.
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
