package faults

import (
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
)

// pausedSizes make followers wait for longer than the longest pause, so that the paused leader
// still leads when it resumes.
//
// The leader takes about T/8 to end the sessions of the crowd, and meanwhile answers requests of
// sessions that it is about to end. Without a crowd it usually ends A's session before it has read
// A's request.
var pausedSizes = []size{
	{tick: 2 * time.Second, timeout: 4 * time.Second, crowd: 2500},
	{tick: 2 * time.Second, timeout: 10 * time.Second, syncLimit: 15, crowd: 5000},
}

// The server that client A uses.
const (
	onLeader = iota
	onFollower
)

// The moment of client A's Lock, which is A's first Lock except for againAtResume.
const (
	atResume      = iota // when the leader resumes
	underWay             // during the pause
	againAtResume        // when the leader resumes, after a hold before the pause
)

// pausedLeader suspends the leader for a part of T, while A's session is idle. A takes the lock,
// and is cut off from its server as soon as A has the lock. When the leader resumes, it may answer
// A and end A's session a moment later.
func pausedLeader(where int, part float64, when int) func(*stage) outcome {
	return func(s *stage) outcome {
		leader, followers := s.e.Leader(), s.e.Followers()
		server, others := leader, followers
		if where == onFollower {
			server, others = followers[0], followers[1:]
		}
		a := s.connect("A", s.size.timeout, server)
		b := s.connect("B", longTimeout, others...)
		s.makeDirectory(b)
		if when == againAtResume {
			s.makeDirectory(a)
		}
		s.last(s.upTo(s.size.timeout / 3))
		s.crowd(leader)

		pause := time.Duration(part * float64(s.size.timeout))
		if part == 1 {
			// The leader rounds the end of a session up to a multiple of the
			// tick. These pauses end around the moment when A's session is due.
			pause += s.size.tick/2 + s.upTo(s.size.tick)
		}
		began := time.Now()
		s.e.Pause(leader)
		s.note(began, "server %d, the leader, was paused for %v; client A is on server %d", leader, pause.Round(time.Millisecond), server)
		before := s.upTo(pause)
		var asked <-chan hold
		if when == underWay {
			s.last(before)
			s.note(time.Now(), "client A called Lock")
			asked = a.lock()
			s.last(pause - before)
		} else {
			s.last(pause)
		}
		mark := len(s.e.Log(leader))
		resumed := make(chan struct{})
		o := outcome{fault: time.Now()}
		s.note(o.fault, "server %d went on", leader)
		go func() {
			defer close(resumed)
			s.e.Resume(leader)
		}()
		if when != underWay {
			asked = a.lock()
		}
		held := s.held(asked)
		s.e.Cut(zksynctest.Client, server)
		s.note(time.Now(), "client A was cut off from server %d", server)
		next := b.lock()
		o.ended = await(s, "the end of A's held context", held.ended)
		o.next = s.held(next).granted
		await(s, "the leader to answer", resumed)
		s.sweep(o.fault, leader, mark)
		return o
	}
}
