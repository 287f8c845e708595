package queue

import "time"

// A nextWakeUp says when a consumer that found no message must look again: when a
// watch fires, or earlier.
type nextWakeUp struct {
	stale bool      // at once: a listing has become stale
	until time.Time // at this time, if it is not zero: a known message falls due
}

// before moves the time to t if that is earlier.
func (w *nextWakeUp) before(t time.Time) {
	if w.until.IsZero() || t.Before(w.until) {
		w.until = t
	}
}

// lookPause is the longest time until the next look while a message falls due.
const lookPause = time.Minute

// timer returns when to look again if no watch fires.
func (w *nextWakeUp) timer() time.Time {
	// A timer does not notice that the clock of the machine is set forward.
	if soon := time.Now().Add(lookPause); w.until.After(soon) {
		return soon
	}
	return w.until
}
