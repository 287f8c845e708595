package wire

import "time"

// A silence watches the requests of a connection, and reports a server that answers
// nothing. There is one timer for all requests, which runs on while some are unanswered
// when it fires. Conn.mu guards it.
type silence struct {
	timer *time.Timer
	runs  bool
	pause time.Duration
}

// The pauses between reports.
const (
	firstReport = 3 * time.Second
	maxReport   = 5 * time.Minute
)

// start starts the timer if it does not run, because a request is about to be sent.
func (s *silence) start(report func()) {
	switch {
	case s.runs:
		return
	case s.timer == nil:
		s.timer = time.AfterFunc(firstReport, report)
	default:
		s.timer.Reset(firstReport)
	}
	s.runs, s.pause = true, firstReport
}

// due reports whether a silence must be reported, and starts the timer for the next
// check.
func (s *silence) due(silence time.Duration) bool {
	due := silence >= s.pause
	if due {
		s.pause = min(2*s.pause, maxReport)
	}
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
	defer w.mu.Unlock()
	if w.closed || len(w.pending.calls) == 0 {
		w.silence.runs = false
		return
	}
	if w.silence.due(d) {
		w.cfg.Silent(d, len(w.pending.calls))
	}
}
