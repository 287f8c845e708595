package main

import (
	"context"
	"time"
)

// A saboteur causes faults, each time for the current holder of the lock.
type saboteur struct {
	stage *stage
	show  *timeline
	res   *resource

	plan   []fault
	done   int
	offers chan *hold
	losers map[*worker]bool
}

// A fault is due at a fraction of the run's length.
type fault struct {
	name   string
	due    float64
	loses  bool // the holder loses the lock; no worker loses it twice
	strike func(*saboteur, context.Context, *hold, time.Duration) bool
}

func newSaboteur(st *stage, show *timeline, res *resource) *saboteur {
	s := &saboteur{stage: st, show: show, res: res, offers: make(chan *hold), losers: make(map[*worker]bool)}
	broken := fault{name: "a connection that breaks", due: 0.08, strike: (*saboteur).breakConnection}
	expired := fault{name: "a session that is expired by force", due: 0.2, loses: true, strike: (*saboteur).expireSession}
	away := fault{name: "a holder that is cut off for longer than its session timeout", due: 0.4, loses: true, strike: (*saboteur).cutOff}
	if st.expire != nil {
		s.plan = []fault{broken, expired, away}
	} else {
		away.due = expired.due // where session timeouts are longer, too, as a rule
		s.plan = []fault{broken, away}
	}
	return s
}

// missed names the faults that the run had no time for.
func (s *saboteur) missed() (names []string) {
	for _, f := range s.plan[s.done:] {
		names = append(names, f.name)
	}
	return names
}

// offer asks whether this hold is to be hit. If so the worker keeps the lock
// until h.free is closed or the lock is lost.
func (s *saboteur) offer(h *hold) bool {
	select {
	case s.offers <- h:
		return true
	default:
		return false
	}
}

func (s *saboteur) run(ctx context.Context, length, timeout time.Duration) error {
	start := time.Now()
	for _, f := range s.plan {
		pause(ctx, time.Until(start.Add(time.Duration(f.due*float64(length)))))
		h := s.victim(ctx, f)
		if h == nil {
			return nil
		}
		pause(h.held, length/50) // so that one sees it hold
		seen := f.strike(s, ctx, h, timeout)
		close(h.free)
		if !seen {
			return nil
		}
		s.done++
	}
	return nil
}

// victim waits for the next hold that f may hit; nil means that ctx ended.
func (s *saboteur) victim(ctx context.Context, f fault) *hold {
	for {
		select {
		case h := <-s.offers:
			if !f.loses {
				return h
			}
			if !s.losers[h.worker] {
				s.losers[h.worker] = true
				return h
			}
			close(h.free)
		case <-ctx.Done():
			return nil
		}
	}
}

// breakConnection resets the holder's connection, which it should survive.
func (s *saboteur) breakConnection(ctx context.Context, h *hold, _ time.Duration) bool {
	sess, err := h.worker.m.Session(ctx)
	if err != nil {
		return false
	}
	s.show.fault("breaks the connection of %s, which has the lock", h.worker.name)
	h.strike(false)
	h.worker.link.reset()
	if err := sess.Sync(h.held, "/"); err != nil {
		return ctx.Err() == nil // it was lost all the same: the worker will tell
	}
	s.show.say(h.worker.name, "is back", "%s later, in the same session: it still has the lock", short(time.Since(h.struckAt())))
	return true
}

// expireSession ends the holder's session on the server before its time, as an
// operator could. No client can know that in advance.
func (s *saboteur) expireSession(ctx context.Context, h *hold, _ time.Duration) bool {
	sess, err := h.worker.m.Session(ctx)
	if err != nil {
		return false
	}
	s.show.fault("expires the session of %s, which has the lock, by force", h.worker.name)
	h.strike(true)
	if err := s.stage.expire(sess.ID()); err != nil {
		s.show.fault("could not: %v", err)
		return false
	}
	<-h.held.Done()
	return s.res.overtaken(ctx, h.token)
}

// cutOff lets nothing through between the holder and the servers, without closing
// anything, until another worker has the lock.
func (s *saboteur) cutOff(ctx context.Context, h *hold, timeout time.Duration) bool {
	s.show.cutLane(h.worker.number, true)
	s.show.fault("cuts %s off, which has the lock: nothing gets through, nothing is closed", h.worker.name)
	h.strike(false)
	h.worker.link.cut()
	defer func() {
		h.worker.link.heal()
		s.show.cutLane(h.worker.number, false)
		s.show.fault("heals the network of %s", h.worker.name)
	}()
	<-h.held.Done()
	knew := time.Now()
	if !s.res.overtaken(ctx, h.token) {
		return false
	}
	s.show.fault("the server passed the lock on %s after %s knew", short(time.Since(knew)), h.worker.name)
	pause(ctx, timeout/4)
	return true
}
