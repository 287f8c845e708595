package zkserver_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const realTick = 500 * time.Millisecond

// comparisons are the scripts that compare real and embedded ensembles.
var comparisons = []comparison{
	{name: "moves, a cut, a dead leader", tick: realTick, limit: 5, script: func(s *script) {
		s.moves()
		s.cut()
		s.killLeader()
	}},
	{name: "touches", tick: time.Second, limit: 5, script: (*script).touches},
	{name: "deposed leader, connections reset", tick: realTick, limit: deposedTicks, script: (*script).deposedByReset},
	{name: "deposed leader, followers restarted", tick: realTick, limit: 40, script: (*script).deposedByRestart},
	{name: "deposed leader, no transaction", tick: realTick, limit: deposedTicks, script: (*script).deposedBeforeATransaction},
	{name: "cut off after forwarding", tick: realTick, limit: 10, script: func(s *script) {
		s.cutOffAfterForwarding()
		s.cutOffAfterProposing()
	}},
	{name: "throttling", tick: realTick, limit: 40, real: throttling, script: (*script).throttled},
	{name: "enforced quotas", tick: realTick, limit: 5, script: (*script).quotas,
		real: enforcing, config: zkserver.Config{EnforceQuota: true}},
	{name: "reaping", tick: realTick, limit: 5, script: (*script).reaped,
		real: reaping, config: zkserver.Config{ExtendedTypes: true, ReapInterval: time.Second}},
	{name: "shorter timeout", tick: realTick, limit: 5, script: (*script).shorterTimeout},
}

// An embedded ensemble looks to its clients like a real one: kill, pause, cut, elect, lag, throttle
// and session moves. TestLikeARealEnsemble runs the same faults on three real servers and on three
// endpoints, and requires that the clients see the same results.
//
// Real servers on a busy machine may miss the time limits of a script's steps, may need a second
// election, and may answer over a follower before the leader has applied the transaction, which its
// quotas then do not count. So a script that sees a difference runs again: a difference between the
// two kinds of ensemble shows each time.
func TestLikeARealEnsemble(t *testing.T) {
	const runs = 3
	for _, c := range comparisons {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			real, embedded := c.onReal(t), c.onEmbedded(t)
			for run := 1; !slices.Equal(real, embedded); run++ {
				differences(t, run, real, embedded)
				if run == runs {
					t.Fatalf("the clients saw differences each of %d times", runs)
				}
				real = c.onReal(t)
			}
			for _, line := range real {
				t.Log(line)
			}
		})
	}
}

// differences logs the lines in which real and embedded differ.
func differences(t *testing.T, run int, real, embedded []string) {
	t.Helper()
	for i := range max(len(real), len(embedded)) {
		line := func(of []string) string {
			if i < len(of) {
				return of[i]
			}
			return "nothing"
		}
		if line(real) != line(embedded) {
			t.Logf("run %d, line %d: real: %s; embedded: %s", run, i+1, line(real), line(embedded))
		}
	}
}

func (s *script) moves() {
	leader, followers := s.e.Leader(), s.e.Followers()
	for _, from := range []int{followers[0], leader} {
		for _, op := range []zkserver.OpCode{zkserver.OpPing, zkserver.OpExists, zkserver.OpSync, zkserver.OpSetData} {
			body := map[zkserver.OpCode][]byte{
				zkserver.OpExists: existsRec("/"), zkserver.OpSync: rec{}.str("/"), zkserver.OpSetData: setRec("/"),
			}[op]
			old := s.connect(from, nil)
			moved := s.connect(followers[1], old)
			before := s.ask("write", moved, zkserver.OpSetData, setRec("/"))
			s.ask(fmt.Sprintf("%v where the session was, leader %v", op, from == leader), old, op, body)
			after := s.ask("write", moved, zkserver.OpSetData, setRec("/"))
			s.note("%d transactions", after-before)
			s.ask("close", moved, zkserver.OpCloseSession, nil)
			old.nc.Close()
		}
	}
}

func (s *script) cut() {
	leader, f := s.e.Leader(), s.e.Followers()
	r, behind := s.connect(f[0], nil), s.connect(f[0], nil)
	s.e.Cut(f[0], leader)
	s.e.Cut(f[0], f[1])
	begin := time.Now()
	s.ask("cut off: ping", r, zkserver.OpPing, nil)
	s.ask("cut off: exists", r, zkserver.OpExists, existsRec("/"))
	behind.send(zkserver.OpSync, rec{}.str("/"))
	behind.send(zkserver.OpExists, existsRec("/"))
	s.ask("cut off: ping behind a sync", behind, zkserver.OpPing, nil)
	if _, err := r.read(); err != nil {
		ticks := time.Since(begin) / realTick
		s.note("closed after its sync limit of 5 ticks: %v", ticks >= 4 && ticks <= 7)
	}
	s.connect(f[0], r)
	again := s.connect(f[1], r)
	s.ask("the session lives elsewhere", again, zkserver.OpSetData, setRec("/"))
	s.e.HealAll()
	s.e.WaitReady()
	s.ask("and there still", again, zkserver.OpExists, existsRec("/"))
}

// cutOffAfterForwarding has the leader carry out a write and cuts off the forwarding server before
// it hears of the result.
func (s *script) cutOffAfterForwarding() {
	f := s.e.Followers()
	r, other := s.connect(f[0], nil), s.connect(f[0], nil)
	var write int32
	s.cutAfter(f[0], func() { write = r.send(zkserver.OpCreate, createRec("/a", "", 0)) })
	s.outcome("create", r, write, unanswered)
	elsewhere := s.connect(f[1], nil)
	s.ask("exists elsewhere", elsewhere, zkserver.OpExists, existsRec("/a"))
	s.ask("ping of another session here", other, zkserver.OpPing, nil)
	s.ask("exists of another session here", other, zkserver.OpExists, existsRec("/a"))
	ping := r.send(zkserver.OpPing, nil)
	s.outcome("ping behind the create", r, ping, unanswered)
	s.untilClosed(other)
	moved := s.connect(f[1], r)
	s.ask("exists over a new connection", moved, zkserver.OpExists, existsRec("/a"))
	s.e.HealAll()
	s.e.WaitReady()
	back := s.connect(f[0], r)
	s.ask("exists where it was forwarded", back, zkserver.OpExists, existsRec("/a"))
}

// cutOffAfterProposing cuts off the leader after it has proposed a write and before it hears of the
// acknowledgements: the next leader commits the write.
func (s *script) cutOffAfterProposing() {
	old, f := s.e.Leader(), s.e.Followers()
	r, other := s.connect(old, nil), s.connect(old, nil)
	var write int32
	s.cutAfter(old, func() { write = r.send(zkserver.OpCreate, createRec("/b", "", 0)) })
	s.outcome("create at the leader", r, write, unanswered)
	for _, i := range f {
		s.e.ResetEnd(i, old)
	}
	next := s.e.WaitLeader(old)
	s.ask("exists at the old leader", other, zkserver.OpExists, existsRec("/b"))
	s.ask("exists at the next leader", s.connect(next, nil), zkserver.OpExists, existsRec("/b"))
	s.e.HealAll()
	s.e.WaitReady()
	s.ask("exists over a new connection", s.connect(old, r), zkserver.OpExists, existsRec("/b"))
}

func (s *script) killLeader() {
	leader, f := s.e.Leader(), s.e.Followers()
	r := s.connect(f[0], nil)
	last := s.ask("before", r, zkserver.OpCreate, createRec("/e", "", 1))
	s.e.Kill(leader)
	if _, err := r.read(); err != nil {
		s.note("clients of followers are closed with the leader's end")
	}
	next := s.e.WaitLeader(leader)
	s.e.WaitReady()
	i := slices.IndexFunc(f, func(i int) bool { return i != next })
	led, follows := s.connect(next, nil), s.connect(f[i], r)
	s.note("epoch %d", s.ask("exists", led, zkserver.OpExists, existsRec("/e"))>>32-last>>32)
	zxid := s.ask("write", follows, zkserver.OpSetData, setRec("/e"))
	s.note("transaction %d of epoch %d", int32(zxid), zxid>>32-last>>32)
}
