package wire

import (
	"slices"
	"time"
)

// firstXid is where requests begin to count, downwards. The xids down to -8 have meanings
// in the protocol.
const firstXid int32 = -1000

const (
	xidEvent int32 = -1
	xidPing  int32 = -2 // of the answer to a ping with any xid
	xidAuth  int32 = -4
)

// pending are the requests of a connection that are unanswered.
type pending struct {
	calls   []*Call // in the order in which they were sent, and are answered
	auths   int     // credentials
	lastXid int32
	newest  time.Time // when the newest request was written
	leader  time.Time // when the newest request was written that a leader answers
}

// add gives a call its number.
func (p *pending) add(c *Call) {
	if p.lastXid--; p.lastXid > firstXid { // wrapped around after two thousand million requests
		p.lastXid = firstXid
	}
	c.xid = p.lastXid
	c.Sent = time.Now()
	p.newest = c.Sent
	if c.asksLeader() {
		p.leader = c.Sent
	}
	p.calls = append(p.calls, c)
}

// take removes and returns the call that an answer is for, and reports whether older
// calls have not been answered.
func (p *pending) take(xid int32) (c *Call, skipped bool) {
	i := slices.IndexFunc(p.calls, func(c *Call) bool {
		// The server answers every ping by the xid -2, regardless of the xid of the
		// request.
		return c.xid == xid || xid == xidPing && c.Op == OpPing
	})
	if i < 0 {
		return nil, false
	}
	c = p.calls[i]
	// Servers answer in order, so this is the usual case.
	if i == 0 {
		// The array must not keep the call and its answer.
		p.calls[0] = nil
		p.calls = p.calls[1:]
		return c, false
	}
	p.calls = slices.Delete(p.calls, i, i+1)
	return c, true
}

// hidesEvents reports whether the server has left out the answer to setWatches ahead of the
// answer with this xid.
func (p *pending) hidesEvents(xid int32) bool {
	// Only the handshake goes ahead of setWatches on a connection, so an unanswered
	// setWatches is the oldest call.
	return p.has(xid) && p.calls[0].Op == OpSetWatches && p.calls[0].xid != xid
}

func (p *pending) has(xid int32) bool {
	return slices.ContainsFunc(p.calls, func(c *Call) bool { return c.xid == xid })
}

// Pending returns the number of requests that are unanswered.
func (w *Conn) Pending() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending.calls)
}

// Unanswered returns the time for which the server has sent nothing while a request waits
// for its answer.
func (w *Conn) Unanswered(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending.calls) == 0 {
		return 0
	}
	// Whatever arrives is a sign of life, and need not be an answer.
	since := w.pending.calls[0].Sent
	if last := w.LastArrival(); last.After(since) {
		since = last
	}
	return now.Sub(since)
}

// LastRequest returns the times at which the newest request was written, and the newest
// request that a leader answers.
func (w *Conn) LastRequest() (any, leader time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pending.newest, w.pending.leader
}

// A silence watches the requests of a connection, and reports a server that answers
// nothing. There is one timer for all requests, which runs on while some are unanswered
// when it fires. Conn.mu guards it.
type silence struct {
	timer *time.Timer // nil if it does not run
	pause time.Duration
}

// The pauses between reports.
const (
	firstReport = 3 * time.Second
	maxReport   = 5 * time.Minute
)

// start starts the timer if it does not run, because a request is about to be sent.
func (s *silence) start(report func()) {
	if s.timer == nil {
		s.timer, s.pause = time.AfterFunc(firstReport, report), firstReport
	}
}

// due reports whether a silence must be reported, and starts the timer for the next
// check.
func (s *silence) due(silence time.Duration) bool {
	due := silence >= s.pause
	if due {
		s.pause = min(2*s.pause, silence+maxReport)
	}
	// If something has arrived meanwhile, silence is short, and the whole pause begins
	// again with that arrival.
	s.timer.Reset(s.pause - silence)
	return due
}

func (s *silence) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// reportSilence reports that nothing was answered for a while.
func (w *Conn) reportSilence() {
	d := w.Unanswered(time.Now())
	w.mu.Lock()
	unanswered := len(w.pending.calls)
	// With no request unanswered the timer stops. The next request starts it again.
	if w.closed || unanswered == 0 {
		w.silence.timer = nil
		w.mu.Unlock()
		return
	}
	due := w.silence.due(d)
	w.reports.Add(1) // while the connection is open, so Run still waits
	w.mu.Unlock()
	defer w.reports.Done()
	// Without mu: the program's logger may block, and every other method needs mu.
	if due {
		w.cfg.Handler.Silent(d, unanswered)
	}
}
