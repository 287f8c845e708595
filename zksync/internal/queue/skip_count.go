package queue

import (
	"sync"
	"time"
)

// skipLogPause limits the log lines about skipped messages.
const skipLogPause = time.Minute

// A skipCount counts the messages that a consumer has skipped.
type skipCount struct {
	mu     sync.Mutex
	count  int
	last   error
	logged time.Time
}

// add counts a message, and returns the number of messages and whether to log this one.
func (k *skipCount) add(why error) (count int, log bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.count++
	k.last = why
	// Every message of a long queue may be unreadable: the log has one line a minute.
	if log = k.logged.IsZero() || time.Since(k.logged) >= skipLogPause; log {
		k.logged = time.Now()
	}
	return k.count, log
}

// get returns the number of messages, and the reason for the last skip.
func (k *skipCount) get() (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.count, k.last
}
