package zkserver

import (
	"context"
	"slices"
	"time"
)

// Leader is the number of the endpoint that leads at present, or 0: while there is
// no quorum, during an election, and while the leader is frozen it is 0. The one
// endpoint of a [Server] that [New] made leads while it runs.
func (s *Server) Leader() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.en.leading()
}

func (en *ensemble) leading() int {
	if !en.active() {
		return 0
	}
	return en.leader.number
}

// Followers are the numbers of the endpoints that follow the leader, in order.
func (s *Server) Followers() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []int
	for _, e := range s.en.endpoints {
		if s.en.leader != nil && e != s.en.leader && e.member && !e.rep.cut && e.thaw == nil {
			list = append(list, e.number)
		}
	}
	return list
}

// WaitLeader waits for a leader that is none of those named, and returns its
// number.
func (s *Server) WaitLeader(ctx context.Context, not ...int) (int, error) {
	var leader int
	err := s.en.wait(ctx, func() bool {
		leader = s.en.leading()
		return leader != 0 && !slices.Contains(not, leader)
	})
	return leader, err
}

// WaitReady waits until all endpoints that are neither stopped nor frozen serve, as
// one leader and its followers.
func (s *Server) WaitReady(ctx context.Context) error {
	return s.en.wait(ctx, func() bool {
		return s.en.active() && !slices.ContainsFunc(s.en.endpoints, func(e *Endpoint) bool {
			return !e.down && e.thaw == nil && (!e.member || e.rep.cut)
		})
	})
}

// WaitElection waits for the end of the election that goes on, if one does.
func (s *Server) WaitElection(ctx context.Context) error {
	return s.en.wait(ctx, func() bool { return s.en.election == nil })
}

func (en *ensemble) wait(ctx context.Context, ready func() bool) error {
	for {
		en.s.mu.Lock()
		ok, closed, changed := ready(), en.s.closed, en.change()
		en.s.mu.Unlock()
		switch {
		case ok:
			return nil
		case closed:
			return ErrNotServing
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// hear touches the session of c, or has its leader told. Followers tell of theirs
// each half tick, when the leader asks.
func (en *ensemble) hear(c *conn, now time.Time) {
	if c.rep.cut || c.sess.dead {
		return
	}
	e := c.ep
	if e == en.leader {
		en.s.touch(c.sess, now)
		return
	}
	e.heard[c.sess.id] = c.sess
	if e.report == nil {
		en.reportLater(e)
	}
}

func (en *ensemble) reportLater(e *Endpoint) {
	half := en.s.cfg.TickTime / 2
	age := time.Since(en.s.base)
	var t *timer
	t = en.s.afterFunc((age/half+1)*half-age, func() {
		en.s.mu.Lock()
		defer en.s.mu.Unlock()
		if en.s.closed || e.report != t {
			return
		}
		e.report, e.overdue = nil, true
		en.reportOverdue()
	})
	e.report = t
}

// reportOverdue has the leader told what it has asked for. Neither can while one of
// them is frozen, and do as soon as both go on.
func (en *ensemble) reportOverdue() {
	if en.leader == nil || en.leader.thaw != nil {
		return
	}
	now := time.Now()
	for _, e := range en.endpoints {
		if !e.overdue || e.thaw != nil {
			continue
		}
		e.overdue = false
		for _, sess := range e.heard {
			if !sess.dead {
				en.s.touch(sess, now)
			}
		}
		clear(e.heard)
	}
}

// forgetHeard loses what the leader was not told yet.
func (en *ensemble) forgetHeard(e *Endpoint) {
	clear(e.heard)
	e.report.stop()
	e.report, e.overdue = nil, false
}
