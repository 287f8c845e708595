package zkserver

import (
	"sync"
	"time"
)

// logger logs lines with [Config.Logf]. It must not be called with the server's mu held.
type logger struct {
	logf func(format string, args ...any)
	mu   sync.Mutex
	last map[string]time.Time // time of the latest line of each kind
	left map[string]int       // number of suppressed lines of each kind since then
}

// logInterval is the minimum time between two lines of one kind.
const logInterval = time.Second

func (l *logger) print(kind, format string, args ...any) {
	if l.logf == nil {
		return
	}
	l.mu.Lock()
	now := time.Now()
	if last, ok := l.last[kind]; ok && now.Sub(last) < logInterval {
		l.left[kind]++
		l.mu.Unlock()
		return
	}
	if l.last == nil {
		l.last, l.left = map[string]time.Time{}, map[string]int{}
	}
	l.last[kind] = now
	left := l.left[kind]
	l.left[kind] = 0
	l.mu.Unlock()
	if left > 0 {
		format += " (%d lines like this one were left out)"
		args = append(args, left)
	}
	l.logf(format, args...)
}
