package wire

import "time"

// Pending returns the number of requests that are unanswered.
func (w *Conn) Pending() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending.calls)
}

// Unanswered returns for how long the server has sent nothing though a request
// waits for its answer.
func (w *Conn) Unanswered(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unanswered(now)
}

// unanswered is Unanswered for callers that hold w.mu.
func (w *Conn) unanswered(now time.Time) time.Duration {
	if len(w.pending.calls) == 0 {
		return 0
	}
	since := w.pending.calls[0].Sent
	if last := w.arrivals.last(); last.After(since) {
		since = last
	}
	return now.Sub(since)
}

// LastRequest returns when the newest request was written, and the newest request
// that a leader answers.
func (w *Conn) LastRequest() (any, leader time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pending.newest, w.pending.leader
}

// LastArrival returns when the newest bytes arrived.
func (w *Conn) LastArrival() time.Time { return w.arrivals.last() }

// Arriving returns the answer of which some bytes have arrived, and the number of
// these bytes. ok is false if there is none.
func (w *Conn) Arriving() (p Partial, got int, ok bool) { return w.arrivals.arriving() }

// blame notes that the connection is about to be ended because of the answer to a
// request. The call learns it from End.
func (w *Conn) blame(xid int32, why *LostAnswer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.guilty == nil {
		w.blamed, w.guilty = xid, why
	}
}

// Blame blames an answer that has arrived in part for the end of the connection, and
// returns the reason. It returns nil, and does nothing, if the answer is complete
// meanwhile: the next one must not be blamed for it.
func (w *Conn) Blame(p Partial, now time.Time, guilt int) error {
	current, got, _ := w.arrivals.arriving()
	if current != p {
		return nil
	}
	err := w.cfg.TooSlow(got, p.size, now.Sub(p.Began))
	if guilt > 0 {
		w.blame(p.xid, &LostAnswer{err, guilt})
	}
	return err
}

// BlameStall blames the answer that has arrived in part for the end of the stream. It
// does nothing if no answer has arrived in part. The network may have broken down in the middle of the answer.
func (w *Conn) BlameStall() {
	if p, _, ok := w.arrivals.arriving(); ok {
		w.Blame(p, time.Now(), GuiltOfStall)
	}
}
