package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// maxQueued bounds the bytes that one direction of a delayed link holds.
const maxQueued = 4 << 20

// chunk is the result of one Read; the last chunk of a direction has end set.
type chunk struct {
	data []byte
	at   time.Time // when it was read
	end  bool
}

// pump carries one direction. Reading and writing are two goroutines, so that
// a delay adds latency and does not divide the throughput.
type pump struct {
	c       *conn
	src     net.Conn
	dst     net.Conn
	rewrite Rewriter
	passed  *atomic.Pointer[time.Time] // when bytes last came through

	mu     sync.Mutex
	queue  []chunk
	queued int
	filled chan struct{} // a token when the queue has grown
	eased  chan struct{} // a token when the queue has shrunk
}

func newPump(c *conn, src, dst net.Conn, passed *atomic.Pointer[time.Time]) *pump {
	return &pump{c: c, src: src, dst: dst, passed: passed, filled: make(chan struct{}, 1), eased: make(chan struct{}, 1)}
}

func (p *pump) read() {
	if p.rewrite != nil {
		data, err := p.rewrite(p.src)
		if !p.pass(data, err) {
			return
		}
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := p.src.Read(buf)
		if !p.pass(append([]byte(nil), buf[:n]...), err) {
			return
		}
	}
}

// pass queues the result of a Read and reports whether to read on.
func (p *pump) pass(data []byte, err error) bool {
	now := time.Now()
	if p.c.holed.Load() {
		if err != nil {
			p.c.fail()
		}
		return err == nil
	}
	if len(data) > 0 {
		p.passed.Store(&now)
		if !p.put(chunk{data: data, at: now}) {
			return false
		}
	}
	switch {
	case err == nil:
		return true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		p.put(chunk{end: true, at: now})
	default:
		p.c.fail()
	}
	return false
}

// put waits for room in the queue; it reports false when c was aborted.
func (p *pump) put(item chunk) bool {
	for {
		p.mu.Lock()
		if p.queued < maxQueued {
			p.queue = append(p.queue, item)
			p.queued += len(item.data)
			p.mu.Unlock()
			notify(p.filled)
			return true
		}
		p.mu.Unlock()
		select {
		case <-p.eased:
		case <-p.c.ctx.Done():
			return false
		}
	}
}

// take waits for the next chunk; it reports false when c was aborted.
func (p *pump) take() (chunk, bool) {
	for {
		p.mu.Lock()
		if len(p.queue) > 0 {
			item := p.queue[0]
			p.queue = p.queue[1:]
			p.queued -= len(item.data)
			p.mu.Unlock()
			notify(p.eased)
			return item, true
		}
		p.mu.Unlock()
		select {
		case <-p.filled:
		case <-p.c.ctx.Done():
			return chunk{}, false
		}
	}
}

func (p *pump) write() {
	for {
		item, ok := p.take()
		if !ok || !p.await(item.at) {
			return
		}
		if p.c.holed.Load() {
			if item.end {
				<-p.c.ctx.Done()
				return
			}
			continue
		}
		if item.end {
			closeWrite(p.dst)
			return
		}
		if _, err := p.dst.Write(item.data); err != nil {
			p.c.fail()
			return
		}
	}
}

// await waits until the link's delay has passed since at; it reports false when c was aborted.
func (p *pump) await(at time.Time) bool {
	for {
		delay, changed := p.c.link.delay.current()
		wait := time.Until(at.Add(delay))
		if wait <= 0 {
			return true
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-p.c.ctx.Done():
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}

func notify(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}
