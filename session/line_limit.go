package session

import (
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// A lineLimit limits the log lines of one kind to waitLines per waitWindow. A server in
// trouble or a hostile server could otherwise cause any number of lines.
type lineLimit struct {
	mu         sync.Mutex
	window     time.Time // start of the window
	lines      int       // in the window
	suppressed int
}

const (
	waitLines  = 20 // lines per window
	waitWindow = 10 * time.Second
)

// allow returns the logger for a line of the level, or nil if none may be written. The field
// suppressed of the line has the number of lines that were not written since the last one, so
// the log shows that lines are missing.
func (l *lineLimit) allow(log *zap.Logger, level zapcore.Level) *zap.Logger {
	if !log.Core().Enabled(level) {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.window) > waitWindow {
		l.window, l.lines = now, 0
	}
	if l.lines == waitLines {
		l.suppressed++
		return nil
	}
	l.lines++
	if l.suppressed > 0 {
		log = log.With(zap.Int("suppressed", l.suppressed))
		l.suppressed = 0
	}
	return log
}

// log writes a line, unless the limit is reached.
func (l *lineLimit) log(log *zap.Logger, level zapcore.Level, message string, fields ...zap.Field) {
	if log = l.allow(log, level); log != nil {
		log.WithOptions(zap.AddCallerSkip(1)).Log(level, message, fields...)
	}
}
