package session

import (
	"fmt"
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

// line reports whether another line may be logged, and the number of lines that were
// suppressed since the last one.
func (l *lineLimit) line() (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.window) > waitWindow {
		l.window, l.lines = now, 0
	}
	// The count of suppressed lines goes into the next line, so the log shows that lines
	// are missing.
	if l.lines == waitLines {
		l.suppressed++
		return 0, false
	}
	l.lines++
	suppressed, l.suppressed = l.suppressed, 0
	return suppressed, true
}

// log writes a line, unless the limit is reached. The field suppressed of the next line
// has the number of lines that were not written.
func (l *lineLimit) log(log *zap.Logger, level zapcore.Level, message string, fields ...zap.Field) {
	if !log.Core().Enabled(level) {
		return
	}
	suppressed, ok := l.line()
	if !ok {
		return
	}
	if suppressed > 0 {
		fields = append(fields, zap.Int("suppressed", suppressed))
	}
	log.Log(level, message, fields...)
}

// zkLog passes go-zookeeper's messages to the log.
type zkLog struct {
	log   *zap.Logger
	limit *lineLimit
}

func (z zkLog) Printf(format string, args ...any) {
	if z.log.Core().Enabled(zap.DebugLevel) {
		z.limit.log(z.log, zap.DebugLevel, fmt.Sprintf(format, args...))
	}
}
