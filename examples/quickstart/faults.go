package main

import (
	"context"
	"sync"
	"time"
)

// A schedule says which holds are hit.
type schedule struct {
	start  time.Time
	expire func(session int64) error

	mu   sync.Mutex
	done int
}

// next returns the fault that is due for a worker that has the lock, or nil.
func (s *schedule) next(w *worker) func(w *worker, ctx context.Context, h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	faults := []struct {
		due    float64 // of the length of the run
		loses  bool    // the holder loses the lock
		strike func(w *worker, ctx context.Context, h *hold)
	}{
		{0.08, false, (*worker).breakConnection},
		{0.2, true, (*worker).expireSession},
		{0.4, true, (*worker).cutOff},
	}
	if s.done == len(faults) {
		return nil
	}
	f := faults[s.done]
	if time.Since(s.start) < time.Duration(f.due*float64(length)) || f.loses && w.hit {
		return nil
	}
	s.done++
	w.hit = w.hit || f.loses
	return f.strike
}

// breakConnection resets the holder's connection, which it should survive.
func (w *worker) breakConnection(ctx context.Context, h *hold) {
	s, err := w.m.Session(ctx)
	if err != nil {
		return
	}
	w.show.fault("breaks the connection of %s, which has the lock", w.name)
	h.struck = time.Now()
	w.link.Reset()
	if s.Sync(h.held, "/") == nil { // otherwise the lock is lost all the same, and end will tell
		w.show.say(w.name, "is back", "%s later, in the same session: it still has the lock", short(time.Since(h.struck)))
	}
}

// expireSession ends the holder's session on the server before its time, as an
// operator could. No client can know that in advance.
func (w *worker) expireSession(ctx context.Context, h *hold) {
	s, err := w.m.Session(ctx)
	if err != nil {
		return
	}
	w.show.fault("expires the session of %s, which has the lock, by force", w.name)
	h.struck = time.Now()
	h.revoked = h.struck
	if w.faults.expire(s.ID()) == nil {
		<-h.held.Done()
		w.end(h)
	}
}

// cutOff lets nothing through between the holder and the server, without closing
// anything, until another worker has the lock.
func (w *worker) cutOff(ctx context.Context, h *hold) {
	w.show.lane(w.number, cutOff)
	w.show.fault("cuts %s off, which has the lock: nothing gets through, nothing is closed", w.name)
	h.struck = time.Now()
	w.link.Cut()
	<-h.held.Done()
	w.end(h)
	w.show.lane(w.number, cutOff)
	if w.res.overtaken(ctx, h.token) {
		w.show.fault("the server passed the lock on %s after %s knew", short(time.Since(h.until)), w.name)
		pause(ctx, timeout/4)
	}
	w.link.Heal()
	w.show.lane(w.number, resting)
	w.show.fault("heals the network of %s", w.name)
}
