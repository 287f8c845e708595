package faults

import (
	"sync"
	"time"
)

// longTimeout is B's session timeout, so long that B's lease neither ends nor delays B's grant
// during an election.
const longTimeout = 40 * time.Second

// deposedByRestart cuts the leader, with A on it, off from both followers, and restarts the
// followers behind the cut. The old leader still answers A for syncLimit ticks.
func deposedByRestart(s *stage) outcome {
	return s.depose("were killed and restarted behind the cut", func(followers []int, _ int) {
		both(followers, s.e.Kill)
		both(followers, s.e.Start)
	})
}

// deposedByReset is deposedByRestart, but resets the connections at the followers' ends instead of
// restarting the followers.
func deposedByReset(s *stage) outcome {
	return s.depose("had their ends of the connections with the leader reset", func(followers []int, leader int) {
		both(followers, func(i int) { s.e.ResetEnd(i, leader) })
	})
}

// both calls do for two servers concurrently.
func both(servers []int, do func(int)) {
	var wg sync.WaitGroup
	for _, i := range servers {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}

// depose cuts the leader off, makes the followers elect another leader, and waits until A has lost
// the lock and B has it.
func (s *stage) depose(how string, elect func(followers []int, leader int)) outcome {
	leader, followers := s.e.Leader(), s.e.Followers()
	a := s.connect("A", s.size.timeout, leader)
	b := s.connect("B", longTimeout, followers...)
	held, next := s.line(a, b)
	s.last(s.upTo(s.size.timeout / 2))
	return s.strike(held, next, func() {
		for _, i := range followers {
			s.e.Cut(leader, i)
		}
		s.note(time.Now(), "server %d, the leader, was cut off from servers %v", leader, followers)
		elect(followers, leader)
		s.note(time.Now(), "servers %v %s", followers, how)
	})
}

// line gives A the lock and makes B wait for it.
func (s *stage) line(a, b *client) (held hold, next <-chan hold) {
	s.t.Helper()
	held = s.held(a.lock())
	next = b.lock()
	b.inLine()
	return held, next
}

// strike applies the fault and waits for its consequences. If A has lost the lock before the fault,
// because the machine is too slow for the scenario, the outcome has no hold of A.
func (s *stage) strike(held hold, next <-chan hold, fault func()) outcome {
	s.t.Helper()
	o := outcome{fault: time.Now()}
	fault()
	o.ended = await(s, "the end of A's held context", held.ended)
	o.next = s.held(next).granted
	if o.ended.Before(o.fault) {
		s.note(o.fault, "client A had lost the lock before the fault: this run proves nothing")
		o.ended = time.Time{}
	}
	return o
}

// holderCutOff cuts a holder's follower off from both other servers, at a random moment of the
// holder's steady state.
func holderCutOff(s *stage) outcome {
	leader, followers := s.e.Leader(), s.e.Followers()
	a := s.connect("A", s.size.timeout, followers[0])
	b := s.connect("B", longTimeout, followers[1], leader)
	held, next := s.line(a, b)
	s.last(s.size.timeout/2 + s.upTo(s.size.timeout))
	return s.strike(held, next, func() { s.isolate(followers[0], leader, followers[1]) })
}

// isolate cuts server i off from both other servers.
func (s *stage) isolate(i int, others ...int) {
	for _, j := range others {
		s.e.Cut(i, j)
	}
	s.note(time.Now(), "server %d was cut off from servers %v", i, others)
}
