package faults

import (
	"fmt"
	"math"
	"os"
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
)

// lead is the time before a follower's next report at which a run takes the lock and cuts the
// follower off. The two steps take a few milliseconds.
const lead = 40 * time.Millisecond

// idleCutOff leaves A idle on a follower, so that A's session only pings, and then takes the lock
// and cuts the follower off from both other servers. It chooses the worst moment: the leader's
// latest report of the session is as old as possible.
func idleCutOff(s *stage) outcome {
	leader, followers := s.e.Leader(), s.e.Followers()
	follower := followers[0]
	b := s.connect("B", longTimeout, followers[1], leader)
	s.makeDirectory(b)
	s.last(s.upTo(s.size.tick)) // the phase of the pings
	a := s.connect("A", s.size.timeout, follower)
	news := s.staleNews(follower, leader)
	held := s.held(a.lock())
	o := outcome{fault: time.Now()}
	s.isolate(follower, leader, followers[1])
	s.note(news, "server %d last reported client A's session to server %d, the leader; the session is due %v later",
		follower, leader, s.due(news).Round(10*time.Millisecond))
	if s.e.LastSent(follower, leader).After(held.granted) {
		s.note(o.fault, "but server %d sent another report before it was cut off", follower)
	}
	next := b.lock()
	o.ended = await(s, "the end of A's held context", held.ended)
	o.next = s.held(next).granted
	return o
}

// staleNews waits for the worst moment for the only client on a follower, as observed in the first
// 2T: the moment at which the leader would end the client's session soonest without further
// reports. It returns the time of the leader's latest report of the session.
//
// A follower reports to its leader, twice a tick, the sessions that it has heard from. So the
// latest report of a session is the first report after a ping. Pings, reports and ticks repeat in a
// pattern of T.
func (s *stage) staleNews(follower, leader int) time.Time {
	s.t.Helper()
	began := time.Now()
	news, least := began, time.Duration(math.MaxInt64)
	ping, report := s.e.LastSent(zksynctest.Client, follower), s.e.LastSent(follower, leader)
	s.until("the leader's news of client A to be old", func() bool {
		p, r := s.e.LastSent(zksynctest.Client, follower), s.e.LastSent(follower, leader)
		if r.After(report) && ping.After(news) && r.After(ping) {
			news = r
		}
		ping, report = p, r
		left := s.due(news) - time.Since(news)
		switch observed := time.Since(began); {
		case observed < s.size.timeout/2: // the first value was a guess
			return false
		case observed < 2*s.size.timeout:
			least = min(least, left)
			return false
		default: // the phases drift: in the end accept any moment
			return left < least+lead || observed > 4*s.size.timeout
		}
	})
	return news
}

// due returns the time from a report to the end of the reported session at the leader. The leader
// rounds up to a multiple of the tick, by a clock that counts from the start of the machine. If
// this clock cannot be read, due returns T.
func (s *stage) due(report time.Time) time.Duration {
	text, err := os.ReadFile("/proc/uptime")
	var up float64
	if err == nil {
		_, err = fmt.Sscan(string(text), &up)
	}
	if err != nil {
		return s.size.timeout
	}
	end := time.Duration(up*float64(time.Second)) - time.Since(report) + s.size.timeout
	return s.size.timeout + s.size.tick - end%s.size.tick
}
