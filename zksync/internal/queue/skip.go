package queue

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// slowPause is the time for which a message is skipped whose answer was too slow.
const slowPause = time.Minute

// skip leaves a picked message in the queue and does not pick it again, so that the other
// messages are delivered. A message whose answer was too slow is picked again after a time, as is a message whose name
// another one may have by then.
func (v *view) skip(r messageRef, why error) {
	v.partitions.skip(r)
	if session.IsAnswerTooSlow(why) || r.mayRepeat() {
		v.unskipLater(r)
	}
	if count, log := v.skips.add(fmt.Errorf("skipped %s: %w", r.path(), why)); log {
		v.cfg.Manager.Logger().Warn("message skipped", zap.String("path", r.path()), zap.Int("skipped", count), zap.Error(why))
	}
}

// unskipLater picks a skipped message again after a time. After Close has begun, it does nothing.
func (v *view) unskipLater(r messageRef) {
	v.life.spawn(func() {
		if znode.WaitUntil(v.life.ctx, v.s, nil, time.Now().Add(slowPause)) == nil {
			v.partitions.unskip(r)
		}
	})
}

// skip leaves a picked message in the queue, and does not pick it again.
func (l *partitionList) skip(r messageRef) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(r.partition.picked, r.Name)
	r.partition.skipped[r.Name] = r.Item
}

// unskip makes a skipped message wait again.
func (l *partitionList) unskip(r messageRef) {
	l.mu.Lock()
	// Unless a listing has shown that it is gone.
	if _, ok := r.partition.skipped[r.Name]; ok {
		delete(r.partition.skipped, r.Name)
		r.partition.insert(r.Item)
	}
	l.mu.Unlock()
	l.changed.notify()
}

// skips reports whether this consumer skips a message.
func (l *partitionList) skips() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.begun(time.Now().UnixMilli()), func(p *partition) bool { return len(p.skipped) > 0 })
}

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
