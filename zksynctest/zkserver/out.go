package zkserver

import (
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// writeLoop writes queued frames until the connection ends, and then closes the socket.
func (c *conn) writeLoop() {
	defer c.s.wg.Done()
	defer c.nc.Close()
	defer c.ended()
	defer c.out.end()
	var batch []segment
	for {
		batch = c.out.take(batch[:0])
		for i := range batch {
			seg := &batch[i]
			send, alive := c.act(seg)
			if !alive {
				// Frames that are queued behind a fault that ends the connection are lost.
				c.abandon()
				return
			}
			if send && !c.send(seg.b) {
				c.abandon()
				return
			}
			c.out.wrote(len(seg.b))
			c.out.recycle(seg.b)
			*seg = segment{}
		}
		if len(batch) > 0 {
			if cap(batch) > keptSegments {
				batch = nil
			}
			continue
		}
		if c.out.isEnded() {
			c.end()
			return
		}
		select {
		case <-c.out.wake:
		case <-c.done:
			c.flush()
			return
		}
	}
}

// Notify queues a watch event. It does not wait for the client to read.
func (c *conn) Notify(ev EventType, path string, zxid int64) {
	s := c.s
	s.scratch = jute.AppendEvent(s.scratch[:0], ev, path, zxid)
	c.countSent()
	hits, op := c.watchHits(ev, path, zxid)
	c.out.pushEvent(s.scratch, hits, op, true)
	c.checkQueue()
}

// flush writes the frames that were queued before the connection was closed, unless a fault holds
// them up or the peer does not read.
func (c *conn) flush() {
	if c.abandon() || c.ep.frozen() != nil {
		return
	}
	for _, seg := range c.out.take(nil) {
		send, alive := c.act(&seg)
		if !alive || send && !c.send(seg.b) {
			return
		}
		c.out.wrote(len(seg.b))
	}
}

// abandon blocks until a black-holed connection is released, so that its socket stays open. It
// reports whether the connection was black-holed.
func (c *conn) abandon() bool {
	if !c.hole.Load() {
		return false
	}
	<-c.released
	return true
}

// awaitThaw waits while the endpoint is frozen. It returns false if the connection ended meanwhile.
func (c *conn) awaitThaw() bool {
	for thaw := c.ep.frozen(); thaw != nil; thaw = c.ep.frozen() {
		select {
		case <-thaw:
		case <-c.done:
			return false
		}
	}
	return true
}

// send writes bytes to the socket, or drops them if the connection is black-holed. It reports
// whether the writer may continue.
func (c *conn) send(b []byte) bool {
	if !c.awaitThaw() {
		return false
	}
	if c.hole.Load() {
		return true
	}
	// Before the answer: a client must not see a transaction that a crash would undo.
	if c.s.persist() != nil {
		c.end()
		return false
	}
	n, err := c.nc.Write(b)
	if t := c.traffic.Load(); t != nil {
		t.out.Add(int64(n))
	}
	if err != nil {
		c.end()
	}
	return err == nil
}

func (c *conn) countReceived() {
	c.ep.stats.received++
	c.stats.received++
}

func (c *conn) countSent() {
	c.ep.stats.sent++
	c.stats.sent++
}

// countReply counts a reply that faults delayed by d.
func (c *conn) countReply(r *jute.Request, zxid int64, now time.Time, d time.Duration) {
	c.countSent()
	c.ep.stats.latency.add(d)
	c.stats.latency.add(d)
	if r.Xid >= 0 {
		c.stats.lastXid = r.Xid
	}
	c.stats.lastOp, c.stats.lastZxid = r.Op, zxid
	c.stats.lastTime, c.stats.lastMs = now, d.Milliseconds()
}
