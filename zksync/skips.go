package zksync

import (
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
)

// skipLogPause limits the log lines about skipped messages.
const skipLogPause = time.Minute

// skips counts the messages that a value has skipped.
type skips struct {
	mu     sync.Mutex
	count  int
	last   error
	logged time.Time
}

// Skipped returns how many messages this value has skipped, because they could not be
// read (their ACL does not allow it) or not be removed (they have children). A skipped
// message stays in the queue, and the other messages are delivered. The value tries the
// message again when it has a new session, and counts it again if that fails; other
// values try for themselves. Err returns the reason for the last skip, and a log line,
// one per minute at most, names the message.
//
// A message with children is found out at its removal. So it was delivered before by
// Chan or Messages, and other values deliver it, too. Take does not return it.
func (q *queue) Skipped() int {
	s := &q.consumer.skips
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// record counts a skip, and returns whether to log it.
func (s *skips) record(err error) (count int, log bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	s.last = err
	if log = s.logged.IsZero() || time.Since(s.logged) >= skipLogPause; log {
		s.logged = time.Now()
	}
	return s.count, log
}

// lastError returns the reason for the last skip.
func (s *skips) lastError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// skip leaves a picked message in the queue and does not pick it again, so that the other
// messages are delivered.
func (v *queueView) skip(r messageRef, why error) {
	v.mu.Lock()
	delete(v.picked, r)
	if r.partition.skipped == nil {
		r.partition.skipped = make(map[string]struct{})
	}
	r.partition.skipped[r.name] = struct{}{}
	v.mu.Unlock()
	path := v.path(r)
	// Every message of a long queue may be unreadable: record limits the log.
	count, log := v.c.skips.record(fmt.Errorf("skipped %s: %w", path, why))
	if log {
		v.c.q.m.Logger().Warn("message skipped", zap.String("path", path), zap.Int("skipped", count), zap.Error(why))
	}
}

// withoutSkipped returns the messages of a listing that are not skipped, and forgets the
// skipped messages that the listing does not have; the view's mutex is held.
func (p *partition) withoutSkipped(found []queueItem) []queueItem {
	if len(p.skipped) == 0 {
		return found
	}
	// Only listed names are kept: the set must not grow for as long as the value lives.
	skipped := make(map[string]struct{})
	left := make([]queueItem, 0, len(found))
	for _, it := range found {
		if _, ok := p.skipped[it.name]; ok {
			skipped[it.name] = struct{}{}
		} else {
			left = append(left, it)
		}
	}
	p.skipped = skipped
	return left
}
