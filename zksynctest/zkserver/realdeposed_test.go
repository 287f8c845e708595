package zkserver_test

import (
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const (
	// deposedTicks is a sync limit that leaves time for all requests to a deposed leader.
	deposedTicks = 14
	// unanswered is the time that a script waits for an answer that must not come.
	unanswered = 400 * time.Millisecond
)

// deposedByReset deposes the leader by closing the followers' ends of its connections.
func (s *script) deposedByReset() {
	began := time.Now()
	survivor := s.deposed(func() int { return s.e.Depose() })
	s.untilClosed(survivor)
	ticks := time.Since(began) / realTick
	s.note("closed after its sync limit of 14 ticks: %v", ticks >= deposedTicks-1 && ticks <= deposedTicks+4)
	s.reunion(survivor)
}

// deposedByRestart deposes the leader by restarting its followers behind a cut. The leader does not
// have to wait for its sync limit, because the cut ends.
func (s *script) deposedByRestart() {
	survivor := s.deposed(func() int {
		old, followers := s.e.Leader(), s.e.Followers()
		for _, i := range followers {
			s.e.Cut(old, i)
		}
		for _, i := range followers {
			s.e.Kill(i)
		}
		for _, i := range followers {
			s.e.Start(i)
		}
		s.e.WaitLeader(old)
		return old
	})
	s.reunion(survivor)
}

// deposedBeforeATransaction deposes a leader whose epoch has no transaction yet, and reconnects a client that has seen the zxid of
// that epoch.
func (s *script) deposedBeforeATransaction() {
	first := s.e.Leader()
	old := s.connect(s.e.Followers()[0], nil)
	s.e.Kill(first)
	leader := s.e.WaitLeader(first)
	s.e.Start(first)
	s.e.WaitReady()
	r := s.connect(leader, old)
	zxid := s.ask("ping", r, zkserver.OpPing, nil)
	s.note("the epoch has %d transactions", int32(zxid))
	s.note("another leader: %v", s.e.Depose() == leader)
	s.note("zxid of a ping after the deposition: %d more", s.ask("ping", r, zkserver.OpPing, nil)-zxid)
	again := s.hello(leader, r, zxid, usualTimeout)
	s.welcome("reconnect", again)
	s.note("zxid of a ping over the new connection: %d more", s.ask("ping", again, zkserver.OpPing, nil)-zxid)
	s.e.HealAll()
	s.e.WaitReady()
}

// deposed sends each kind of request to a deposed leader that does not know of its deposition, and
// returns a connection with this leader that is still open.
func (s *script) deposed(depose func() int) *raw {
	old := s.e.Leader()
	a, b, c, d := s.connect(old, nil), s.connect(old, nil), s.connect(old, nil), s.connect(old, nil)
	closes := s.connect(old, nil)
	last := s.ask("create", a, zkserver.OpCreate, createRec("/x", "", 0))
	s.note("another leader: %v", depose() == old)

	s.ask("ping", a, zkserver.OpPing, nil)
	s.ask("exists", a, zkserver.OpExists, existsRec("/x"))
	s.ask("sync", a, zkserver.OpSync, rec{}.str("/"))
	a2 := s.hello(old, a, last, usualTimeout)
	s.welcome("reconnect", a2)
	s.ask("sync over the new connection", a2, zkserver.OpSync, rec{}.str("/"))

	// A request that needs a commit gets no answer, and holds up its session.
	fresh := s.hello(old, nil, 0, usualTimeout)
	write := c.send(zkserver.OpCreate, createRec("/lost", "", 0))
	c.send(zkserver.OpPing, nil)
	closing := closes.send(zkserver.OpCloseSession, nil)
	s.outcome("write", c, write, unanswered)
	c2 := s.hello(old, c, last, usualTimeout)
	s.welcome("reconnect behind a write", c2)
	behind := c2.send(zkserver.OpPing, nil)
	c2.send(zkserver.OpSync, rec{}.str("/"))
	s.ask("sync while proposals are outstanding", b, zkserver.OpSync, rec{}.str("/"))
	s.ask("exists while proposals are outstanding", d, zkserver.OpExists, existsRec("/x"))
	s.outcome("ping behind a write", c2, behind, unanswered)
	s.outcome("new session", fresh, 0, unanswered/4)
	s.outcome("close", closes, closing, unanswered/4)
	s.welcome("reconnect of a session that closes", s.hello(old, closes, last, usualTimeout))

	s.besideTheNext(old, d, b, last)
	return a2
}

// besideTheNext uses sessions with the next leader and with the deposed leader at the same time.
func (s *script) besideTheNext(old int, moves, other *raw, last int64) {
	next := s.e.WaitLeader(old)
	young := s.connect(next, nil)
	s.ask("write to the next leader", young, zkserver.OpCreate, createRec("/new", "", 0))
	s.welcome("session of the next leader at the old one", s.hello(old, young, 0, usualTimeout))
	moved := s.hello(next, moves, last, usualTimeout)
	s.welcome("move to the next leader", moved)
	zxid := s.ask("write over the new connection", moved, zkserver.OpSetData, setRec("/x"))
	s.ask("ping over the old connection", moves, zkserver.OpPing, nil)
	s.ask("sync over the old connection", moves, zkserver.OpSync, rec{}.str("/"))
	s.ask("exists over the old connection", moves, zkserver.OpExists, existsRec("/new"))
	s.welcome("client that has seen more", s.hello(old, other, zxid, usualTimeout))
}

// reunion heals the cuts: no proposal of the deposed leader is committed.
func (s *script) reunion(survivor *raw) {
	healed := time.Now()
	s.e.HealAll()
	s.untilClosed(survivor)
	s.note("closed within 3 ticks of the end of the cut: %v", time.Since(healed) < 3*realTick)
	s.e.WaitReady()
	again := s.connect(s.e.Followers()[0], survivor)
	s.note("the session lives: %v", again.id == survivor.id)
	s.ask("/lost", again, zkserver.OpExists, existsRec("/lost"))
	s.ask("/new", again, zkserver.OpExists, existsRec("/new"))
}
