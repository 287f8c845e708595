package zkserver

import (
	"maps"
	"slices"
	"time"
)

// sessionTracker is one leader's knowledge of the sessions: when each session expires without a
// further touch, and which endpoint owns it. Times are in milliseconds of the server's clock.
type sessionTracker struct {
	tick    int64
	tracked map[int64]*trackedSession
	buckets map[int64]map[int64]*trackedSession
	// picked has the sessions that a sweep is about to end, even if they are touched now.
	picked []*trackedSession
}

type trackedSession struct {
	sess    *session
	bucket  int64     // time of expiry
	owner   *Endpoint // endpoint of its latest connection; nil before the first one
	closing bool      // its end is proposed, or about to be proposed
}

func newSessionTracker(tick time.Duration) sessionTracker {
	return sessionTracker{
		tick:    tick.Milliseconds(),
		tracked: map[int64]*trackedSession{},
		buckets: map[int64]map[int64]*trackedSession{},
	}
}

// track adds a session with its full timeout from now on.
func (t *sessionTracker) track(sess *session, owner *Endpoint, now int64) {
	t.tracked[sess.id] = &trackedSession{sess: sess, owner: owner}
	t.touch(sess.id, sess.timeout, now)
}

// find returns a session that is neither closing nor ended, or nil.
func (t *sessionTracker) find(id int64) *trackedSession {
	if ts := t.tracked[id]; ts != nil && !ts.closing {
		return ts
	}
	return nil
}

// touch moves the session to the bucket in which it expires without a further touch: the first
// multiple of the tick after now plus timeout. The timeout is the timeout of the touching
// connection. touch returns the bucket, or 0 if the session is not alive.
func (t *sessionTracker) touch(id int64, timeout time.Duration, now int64) int64 {
	ts := t.find(id)
	if ts == nil {
		return 0
	}
	bucket := ((now+timeout.Milliseconds())/t.tick + 1) * t.tick
	// Most touches move the session to no other bucket, and should cost little.
	if bucket == ts.bucket {
		return bucket
	}
	t.unlist(ts)
	ts.bucket = bucket
	set := t.buckets[bucket]
	if set == nil {
		set = map[int64]*trackedSession{}
		t.buckets[bucket] = set
	}
	set[id] = ts
	return bucket
}

func (t *sessionTracker) unlist(ts *trackedSession) {
	set := t.buckets[ts.bucket]
	delete(set, ts.sess.id)
	if len(set) == 0 {
		delete(t.buckets, ts.bucket)
	}
}

// forget removes an ended session.
func (t *sessionTracker) forget(id int64) {
	if ts := t.tracked[id]; ts != nil {
		t.unlist(ts)
		delete(t.tracked, id)
	}
}

// next returns the earliest bucket, or 0 if there is none.
func (t *sessionTracker) next() int64 {
	next := int64(0)
	for bucket := range t.buckets {
		if next == 0 || bucket < next {
			next = bucket
		}
	}
	return next
}

// expired lists the sessions that a sweep ends now, in a defined order.
func (t *sessionTracker) expired(now int64) []*trackedSession {
	list := t.picked
	t.picked = nil
	for _, bucket := range slices.Sorted(maps.Keys(t.buckets)) {
		if bucket > now {
			break
		}
		for _, id := range slices.Sorted(maps.Keys(t.buckets[bucket])) {
			if ts := t.buckets[bucket][id]; !slices.Contains(list, ts) {
				list = append(list, ts)
			}
		}
	}
	return list
}

// mayAsk reports whether endpoint e owns the session. The first endpoint that asks a leader for a
// session owns it.
func (t *sessionTracker) mayAsk(id int64, e *Endpoint) bool {
	ts := t.tracked[id]
	if ts == nil {
		return false
	}
	if ts.owner == nil {
		ts.owner = e
	}
	return ts.owner == e
}
