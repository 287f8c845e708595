package zkserver

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// admit waits until the server runs. It returns true, with mu held, if c must still be served.
func (c *conn) admit() bool {
	s := c.s
	for {
		s.mu.Lock()
		if c.closed || c.hole.Load() || c.hung {
			s.mu.Unlock()
			return false
		}
		if c.ep.thaw == nil {
			return true
		}
		thaw := c.ep.thaw
		s.mu.Unlock()
		select {
		case <-thaw:
		case <-c.done:
		}
	}
}

// awaitLeader waits while r needs a leader that is frozen, or a quorum of followers that are
// frozen. The caller holds mu. awaitLeader returns true with mu held; it returns false with mu
// released if c must no longer be served.
func (c *conn) awaitLeader(r *jute.Request) bool {
	s := c.s
	for c.mustWait(r) {
		changed := s.en.change()
		s.mu.Unlock()
		select {
		case <-changed:
		case <-c.done:
		}
		if !c.admit() {
			return false
		}
	}
	return true
}

// mustWait reports whether r cannot be answered now and may be answered later. A leader without a
// quorum creates no session and commits nothing, but it knows the existing sessions, and answers
// the sync of its own clients.
func (c *conn) mustWait(r *jute.Request) bool {
	s := c.s
	l := c.leadership()
	if l == nil || l.deposed || s.en.active() {
		return false
	}
	switch r.Op {
	case OpConnect:
		return r.Connect.SessionID == 0 || l.leader.thaw != nil
	case OpSync:
		return c.ep != l.leader
	}
	return r.Op.IsWrite()
}

// serve handles one frame. It returns false if the connection must serve no further frames.
func (c *conn) serve(frame []byte) bool {
	s, r := c.s, &c.req
	if !c.admit() {
		return false
	}
	d := jute.Decoder{Rest: frame, Known: s.data.Tree}
	// The first frame of a connection has no header.
	if c.sess == nil {
		r.Xid, r.Op = 0, OpConnect
	} else {
		r.Xid, r.Op = d.Int32(), OpCode(d.Int32())
		if d.Bad {
			c.hangUp()
			s.mu.Unlock()
			return false
		}
		if r.Op == OpConnect {
			r.Op = jute.OpError // OpConnect is an internal code: in a header it is an unknown operation
		}
	}
	r.Decode(&d)
	now := time.Now()
	entry := c.record(r, now)
	c.countReceived()
	delayed := false
	if t := c.traffic.Load(); t != nil {
		t.requests.Add(1)
		t.in.Add(int64(4 + len(frame)))
	}

	var v verdict
	target := subject{c: c, r: r, op: entry, at: now}
	if target.wouldStrike(BeforeCommit) {
		s.mu.Unlock()
		// Without mu: a fault may wait, or call methods of the server. The server may stop or freeze
		// meanwhile, and so admit is called again.
		if v = c.strike(BeforeCommit, &target); v.hangUp {
			c.end()
			return false
		}
		if v.lost {
			return true
		}
		if !c.admit() {
			return false
		}
		delayed = true
	}
	if !v.failed && !c.awaitLeader(r) {
		return false
	}
	res := c.execute(r, v, len(frame))
	return c.answer(&target, res, now, delayed)
}

// execute carries out r, or applies the verdict of the faults. The caller holds mu, which also
// orders the frames that are queued for c.
func (c *conn) execute(r *jute.Request, v verdict, frame int) result {
	s := c.s
	if r.Op == OpConnect {
		c.reply = append(c.reply[:0], 0, 0, 0, 0)
		if v.failed {
			c.reply = r.Connect.AppendRefusal(c.reply)
			return result{hangUp: true}
		}
		res := c.connect(r, v.cutOff)
		if t := c.traffic.Load(); t != nil {
			t.requests.Add(1)
			t.in.Add(int64(4 + frame))
		}
		return res
	}
	// A real server answers each ping under this xid, whatever the xid of the request was.
	xid := r.Xid
	if r.Op == OpPing {
		xid = jute.PingXid
	}
	c.reply = jute.AppendHeader(c.reply[:0], xid, 0, jute.OK)
	for i := range r.Subs {
		r.Bad = r.Bad || !s.knows(r.Subs[i].Op)
	}
	switch {
	case v.failed:
		return c.refuse(r.Op, v.code)
	case v.cutOff && c.forwards(r.Op):
		return c.forwardAndCutOff(r)
	case v.cutOff:
		s.en.cutOffServer(c)
	}
	res := c.perform(r)
	if limit := s.cfg.MaxAnswer; limit > 0 && len(c.reply)-4 > limit && !res.silent {
		c.why = fmt.Sprintf("the answer to %v %.100q has more than %d bytes (Config.MaxAnswer)", r.Op, r.Path, limit)
		res = result{silent: true, hangUp: true}
	}
	return res
}

// refuse answers a request that a fault keeps from being carried out. Like any other request it
// touches the session, and waits behind an earlier request of the session that waits for the
// leader.
func (c *conn) refuse(op OpCode, code Code) result {
	s := c.s
	if op != OpAuth && !c.sess.local {
		if _, done := c.arrive(time.Now()); done {
			return result{silent: true}
		}
	}
	if code == ErrSessionMoved {
		return c.moved(op, c.leadership())
	}
	return result{code: code, zxid: s.en.zxidOf(c.rep)}
}

// answer runs the remaining faults and queues the reply to a request that was read at began.
// delayed is set if earlier faults delayed the request. The caller holds mu, and answer releases
// mu.
func (c *conn) answer(target *subject, res result, began time.Time, delayed bool) bool {
	s := c.s
	target.finish(res)
	if !res.silent && (target.wouldStrike(AfterCommit) || target.wouldStrike(BeforeReply)) ||
		res.lost && target.wouldStrike(AfterCommit) {
		c.out.cork()
		s.mu.Unlock()
		v := c.strike(AfterCommit, target)
		if res.lost {
			v.lost, v.failed = true, false // there is no answer that the faults could change
		}
		if !v.lost && !v.hangUp {
			if v.failed { // Match at BeforeReply sees the code
				s.mu.Lock()
				target.amend(v.code)
				s.mu.Unlock()
			}
			v = c.strike(BeforeReply, target).after(v)
		}
		s.mu.Lock()
		// A real server sends no such answer, and closes the connection instead.
		if v.failed && v.code == ErrSessionMoved && target.r.Op != OpConnect {
			v.hangUp = true
		}
		if v.failed {
			res.code, res.whole = v.code, false
			if target.r.Op == OpConnect {
				c.reply = target.r.Connect.AppendRefusal(c.reply[:4])
				res.hangUp = true
			}
			target.amend(v.code)
		}
		if v.hangUp {
			c.hangUp()
		}
		switch {
		case c.closed: // the frames behind the reply are lost with it
		case v.lost:
			c.out.uncork(nil)
		default:
			now := time.Now()
			c.countReply(target.r, res.zxid, now, now.Sub(began))
			c.out.uncork(c.frame(res))
		}
	} else if !res.silent {
		now := began
		if delayed {
			now = time.Now()
		}
		c.countReply(target.r, res.zxid, now, now.Sub(began))
		c.out.push(c.frame(res), false)
	}
	c.checkQueue()
	if res.hangUp {
		c.hangUp()
	}
	alive := !c.closed
	// An idle connection must not keep the memory of its largest answer.
	if cap(c.reply) > keptBuffer {
		c.reply = nil
	}
	if cap(c.req.Subs) > keptSegments {
		c.req.Subs = nil
	}
	s.mu.Unlock()
	return alive
}

// frame completes the frame of the reply in c.reply.
func (c *conn) frame(res result) []byte {
	if c.req.Op == OpConnect {
		return jute.EndFrame(c.reply, 0)
	}
	// Behind an error code in the header, a client reads no record.
	if res.code != jute.OK && !res.whole {
		c.reply = c.reply[:jute.ReplyHeader]
	}
	binary.BigEndian.PutUint64(c.reply[8:], uint64(res.zxid))
	binary.BigEndian.PutUint32(c.reply[16:], uint32(res.code))
	return jute.EndFrame(c.reply, 0)
}
