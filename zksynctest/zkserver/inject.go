package zkserver

import (
	"slices"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// Inject arms a fault and returns its Injection. Faults at the same moment strike in the order in
// which they were injected; after a fault that drops or disconnects, the later faults at that
// moment do not match. Inject panics for an invalid Fault: an unknown Moment, an Error OnWatch, an
// Error(0), a Hold or a Call without its argument, a negative Nth.
func (s *Server) Inject(f Fault) *Injection {
	switch {
	case f.At < BeforeCommit || f.At > OnWatch:
		panic("zkserver: Fault.At is no moment: " + f.At.String())
	case f.At == OnWatch && f.Do.kind == actError:
		panic("zkserver: Fault.Do: a watch event cannot be answered with an Error")
	case f.Do.kind == actError && f.Do.code == 0:
		panic("zkserver: Fault.Do: Error(0) is the code of a success; use a code such as ErrThrottledOp, or the zero Action, which changes no answer")
	case f.At != BeforeCommit && (f.Do.kind == actCutOff || f.Do.throttles):
		panic("zkserver: Fault.Do: " + f.Do.String() + " strikes BeforeCommit, not " + f.At.String())
	case f.Do.kind == actHold && f.Do.until == nil, f.Do.kind == actCall && f.Do.call == nil:
		panic("zkserver: Fault.Do: " + f.Do.String() + " of nil")
	case f.Nth < 0 || f.Times < -1:
		panic("zkserver: Fault.Nth and Fault.Times must not be negative, but for Times -1")
	}
	f.Nth = max(f.Nth, 1)
	if f.Times == 0 {
		f.Times = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.last++
	inj := &Injection{table: &s.faults, fault: f, id: s.faults.last, fired: make(chan struct{})}
	s.faults.injections = append(s.faults.injections, inj)
	return inj
}

// RemoveFaults removes all injected faults.
func (s *Server) RemoveFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.injections, s.faults.removed = nil, s.faults.last
}

// subject is a request that faults are matched against.
type subject struct {
	c  *conn
	r  *jute.Request
	op uint64 // its entry in the log
	at time.Time
	// done is set once the request has the result res.
	done bool
	res  result
}

func (t *subject) matches(m Moment, f *Fault) bool {
	if f.Do.throttles && !t.r.Op.Throttlable() {
		return false
	}
	if f.At != m || f.Op != 0 && f.Op != t.r.Op || f.Endpoint != 0 && f.Endpoint != t.c.ep.number {
		return false
	}
	if f.Session != 0 {
		given := t.c.sess != nil && t.c.sess.id == f.Session
		asked := t.r.Op == OpConnect && t.r.Connect.SessionID == f.Session
		if !given && !asked {
			return false
		}
	}
	return f.matchesRequest(t.r) && (f.Match == nil || f.accepts(t.seen()))
}

// wouldStrike reports whether some fault matches the request at m. The caller holds mu.
func (t *subject) wouldStrike(m Moment) bool {
	for _, inj := range t.c.s.faults.injections {
		if t.matches(m, &inj.fault) {
			return true
		}
	}
	return false
}

// verdict is the combined result of the faults of a moment.
type verdict struct {
	lost   bool
	hangUp bool
	failed bool
	code   Code
	cutOff bool
}

// after merges the verdict of an earlier moment into v.
func (v verdict) after(earlier verdict) verdict {
	if !v.failed {
		v.failed, v.code = earlier.failed, earlier.code
	}
	return v
}

// strike runs the faults of a moment, one after the other. mu is not held, so that a slow fault
// delays no other connection.
func (c *conn) strike(m Moment, t *subject) (v verdict) {
	// The answers to earlier requests go out before the fault holds this request up.
	c.out.kick()
	for last := uint64(0); ; {
		inj := t.nextHit(m, last)
		if inj == nil {
			return v
		}
		last = inj.id
		switch do := inj.fault.Do; do.kind {
		case actDrop:
			v.lost = true
		case actDisconnect:
			v.hangUp = true
			c.end()
		case actError:
			v.failed, v.code = true, do.code
		case actCutOff:
			v.cutOff = true
		default:
			inj.announce()
			do.wait(c.done)
		}
		inj.announce()
		if v.lost || v.hangUp {
			return v
		}
	}
}

// nextHit returns the next fault after number last that strikes, or nil.
func (t *subject) nextHit(m Moment, last uint64) *Injection {
	s := t.c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.c.closed {
		return nil
	}
	for _, inj := range slices.Clone(s.faults.injections) {
		if inj.id <= last || !t.matches(m, &inj.fault) || !s.faults.selects(inj) {
			continue
		}
		inj.struck++
		s.faults.noteFault(t.op, inj)
		return inj
	}
	return nil
}

// watchHits returns the faults that strike an event for c, and the entry of the log that watchHits
// adds for the event. The faults run when the writer reaches the event; their effects are noted in
// the entry. The caller holds mu.
func (c *conn) watchHits(ev EventType, path string, zxid int64) (hits []*Injection, entry uint64) {
	s := c.s
	if len(s.faults.injections) == 0 {
		return nil, 0
	}
	op := Op{
		Session: c.sessionID(), Endpoint: c.ep.number, Conn: c.id, Xid: jute.WatchXid,
		Code: OpWatchEvent, Path: path, Event: ev, Zxid: zxid,
	}
	// A clone, because selects retires a fault at its last match.
	for _, inj := range slices.Clone(s.faults.injections) {
		f := &inj.fault
		if f.At != OnWatch || f.Path != "" && !f.matches(path) || f.Endpoint != 0 && f.Endpoint != op.Endpoint ||
			f.Session != 0 && f.Session != op.Session || f.Match != nil && !f.accepts(op) {
			continue
		}
		if s.faults.selects(inj) {
			hits = append(hits, inj)
			if f.Do.kind == actDrop || f.Do.kind == actDisconnect {
				break // the later faults are for later events
			}
		}
	}
	if hits != nil {
		op.Time = time.Now()
		entry = s.faults.ops.add(op)
	}
	return hits, entry
}

// act runs the faults of a watch event in the writer goroutine. It reports whether to write the
// event, and whether the connection goes on.
func (c *conn) act(seg *segment) (send, alive bool) {
	for _, inj := range seg.hits {
		// A frozen server sends nothing, so the turn of the event comes after the thaw.
		if !c.awaitThaw() {
			return false, false
		}
		if !c.s.faults.strikes(seg.op, inj) {
			continue
		}
		switch do := inj.fault.Do; do.kind {
		case actDrop:
			inj.announce()
			return false, true
		case actDisconnect:
			c.end()
			inj.announce()
			return false, false
		default:
			inj.announce()
			if !do.wait(c.done) {
				return false, false
			}
		}
	}
	if seg.hits != nil {
		c.s.faults.noteSent(seg.op)
	}
	return true, true
}

// amend replaces the result of the request with the code that a fault answers. The caller holds mu.
func (t *subject) amend(code Code) {
	t.res.code = code
	if op := t.c.s.faults.ops.at(t.op); op != nil {
		op.Err = int32(code)
	}
}

// seen returns the request as faults see it.
func (t *subject) seen() Op {
	op := t.c.s.faults.ops.at(t.op)
	if op == nil { // the log has dropped the entry
		op := opFrom(t.c, t.r, t.at)
		if t.done {
			op.finish(t.c, t.res, t.r.Subs)
		}
		return op
	}
	seen := *op
	seen.Sub = slices.Clone(op.Sub)
	return seen
}
