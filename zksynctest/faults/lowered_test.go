package faults

import (
	"strconv"
	"time"
)

var loweredSizes = []size{{tick: time.Second, timeout: 15 * time.Second}}

// loweredTimeout restarts the leader or a follower with a maxSessionTimeout below A's T, while A
// holds the lock on another server, as the first step of a rolling restart. Then A moves to the
// restarted server, which is cut off, in every other run at once. From A's reconnect on, the leader
// uses the lower timeout for A's session, even if the session was due later before.
func loweredTimeout(ofLeader bool) func(*stage) outcome {
	return func(s *stage) outcome {
		leader, followers := s.e.Leader(), s.e.Followers()
		first, restarted, third := followers[0], followers[1], leader
		if ofLeader {
			restarted, third = third, restarted
		}
		a := s.connect("A", s.size.timeout, first)
		b := s.connect("B", longTimeout, third)
		held, next := s.line(a, b)

		lowered := max(2*s.size.tick, s.size.timeout/5)
		s.e.SetProperty(restarted, "maxSessionTimeout", strconv.FormatInt(lowered.Milliseconds(), 10))
		s.e.Restart(restarted)
		s.e.WaitReady()
		s.note(time.Now(), "server %d was restarted with a maxSessionTimeout of %v", restarted, lowered)
		a.move(restarted)
		if s.n%2 == 0 {
			s.last(s.upTo(lowered))
		}
		return s.strike(held, next, func() { s.isolate(restarted, first, third) })
	}
}
