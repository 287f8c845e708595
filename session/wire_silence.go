package session

import (
	"time"

	"go.uber.org/zap"
)

// watchSilence starts the watch over a request that is about to be sent: its timer
// logs a server that answers nothing. w.mu is held. There is one timer for all
// requests, which runs on while some are unanswered when it fires.
func (w *wire) watchSilence() {
	if w.silence == nil {
		w.silence = time.AfterFunc(firstReport, w.reportSilence)
	} else {
		w.silence.Reset(firstReport)
	}
	w.watching = true
	w.silencePause = firstReport
}

// reportSilence logs that nothing was answered for a while, and decides when to look
// again.
func (w *wire) reportSilence() {
	now := time.Now()
	silence := w.unanswered(now)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.pending) == 0 {
		w.watching = false
		return
	}
	if silence < w.silencePause {
		w.silence.Reset(w.silencePause - silence)
		return
	}
	w.s.m.cfg.log.Warn("the server does not answer", zap.String("server", w.server), sessionField(w.s.id),
		zap.Duration("waited", roundTime(silence)), zap.Int("requests", len(w.pending)))
	w.silencePause = min(2*w.silencePause, maxReport)
	w.silence.Reset(w.silencePause - silence)
}
