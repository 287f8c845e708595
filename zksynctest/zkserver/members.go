package zkserver

import (
	"context"
	"slices"
)

// Leader returns the number of the current leader, or 0 without a quorum, during an election, and
// while the leader is frozen. The single endpoint of a [Server] that [New] created leads while it
// runs.
func (s *Server) Leader() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.en.leading()
}

func (en *ensemble) leading() int {
	if !en.active() {
		return 0
	}
	return en.current.leader.number
}

// Followers returns the numbers of the endpoints that follow the leader, in order.
func (s *Server) Followers() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []int
	for _, e := range s.en.endpoints {
		if l := s.en.current; l != nil && e != l.leader && l.has(e) && e.thaw == nil {
			list = append(list, e.number)
		}
	}
	return list
}

// WaitLeader waits for a leader whose number is not in not, and returns its number.
func (s *Server) WaitLeader(ctx context.Context, not ...int) (int, error) {
	var leader int
	err := s.en.wait(ctx, func() bool {
		leader = s.en.leading()
		return leader != 0 && !slices.Contains(not, leader)
	})
	return leader, err
}

// WaitReady waits until all endpoints that are neither stopped nor frozen serve: one leads, and the
// others follow. An endpoint that lags by [Endpoint.Lag] serves, too.
func (s *Server) WaitReady(ctx context.Context) error {
	return s.en.wait(ctx, func() bool {
		return s.en.active() && !slices.ContainsFunc(s.en.endpoints, func(e *Endpoint) bool {
			return !e.down && e.thaw == nil && !s.en.current.has(e)
		})
	})
}

// WaitElection waits for the end of a running election.
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
