package zkserver_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// pausedFor has the pauses of a leader, in parts of the timeout of the sessions that write
// meanwhile, and the number of repetitions.
var pausedFor = map[string]struct {
	pause time.Duration
	times int
}{"T/4": {pauseTimeout / 4, 1}, "T": {pauseTimeout, 2}, "2T": {2 * pauseTimeout, 2}}

const (
	pauseTick    = 400 * time.Millisecond
	pauseTimeout = 4 * pauseTick
)

// writesToAPausedLeader has two clients write while their leader is paused, one over a follower and
// one over the leader itself. It returns the two outcomes: whether the transaction is answered, and
// whether the session lives after that.
func (s *script) writesToAPausedLeader(pause time.Duration) (overFollower, overLeader string) {
	leader := s.e.Leader()
	servers := []int{s.e.Followers()[0], leader}
	var clients [2]*raw
	for i, server := range servers {
		clients[i] = s.session(server, pauseTimeout)
	}
	// The leader last hears of the sessions well before the pause, so that they are overdue after a
	// pause of T.
	time.Sleep(2 * pauseTick)
	s.e.Pause(leader)
	var xids [2]int32
	for i, r := range clients {
		xids[i] = r.send(zkserver.OpSetData, setRec("/"))
	}
	time.Sleep(pause)
	s.e.Resume(leader)
	var outcomes [2]string
	for i, r := range clients {
		in, how := s.read(r, 2*time.Second)
		if in != nil {
			how = fmt.Sprintf("answered %v, code %d", in.i32() == xids[i], errOf(in))
		}
		time.Sleep(200 * time.Millisecond)
		again := s.hello(servers[i], r, 0, pauseTimeout)
		s.welcome("", again)
		outcomes[i] = fmt.Sprintf("%s; the session lives: %v", how, again.id == r.id)
		if again.id == r.id {
			s.ask("", again, zkserver.OpCloseSession, nil)
		}
	}
	return outcomes[0], outcomes[1]
}

// errOf returns the code in the header of an answer whose xid was already read.
func errOf(in *reading) int32 {
	in.i64()
	return in.i32()
}

// A real leader that resumes after a pause behaves like the embedded leader with one of its thaw
// orders.
func TestAPausedLeaderLikeARealOne(t *testing.T) {
	t.Parallel()
	comparison := comparison{tick: pauseTick, limit: 40}
	allowed := map[string][2][]string{} // over a follower, and over the leader
	for name, c := range pausedFor {
		var outcomes [2][]string
		for order := zkserver.RequestsFirst; order <= zkserver.SweepFirst; order++ {
			comparison.script = func(s *script) {
				s.embedded.SetThawOrder(order)
				follower, leader := s.writesToAPausedLeader(c.pause)
				outcomes[0], outcomes[1] = append(outcomes[0], follower), append(outcomes[1], leader)
			}
			comparison.onEmbedded(t)
		}
		// On a busy machine a report of the follower may come before the sweep. Then a long pause
		// has the effect of a short pause.
		outcomes[0] = append(outcomes[0], "answered true, code 0; the session lives: true")
		// The thread of the leader that closes silent connections may come before the sweep and before the
		// request. The embedded server closes a connection by a fault, and has no such thread.
		if c.pause >= pauseTimeout {
			outcomes[1] = append(outcomes[1], "closed; the session lives: true")
		}
		allowed[name] = outcomes
		t.Logf("paused for %s, embedded: over a follower %q, over the leader %q", name, outcomes[0], outcomes[1])
	}
	comparison.script = func(s *script) {
		for name, c := range pausedFor {
			for range c.times {
				follower, leader := s.writesToAPausedLeader(c.pause)
				t.Logf("paused for %s, real: over a follower %q, over the leader %q", name, follower, leader)
				for i, got := range []string{follower, leader} {
					if want := allowed[name][i]; !slices.Contains(want, got) {
						t.Errorf("a real leader paused for %s, client over the leader %v: %q, want one of %q", name, i == 1, got, want)
					}
				}
			}
		}
	}
	comparison.onReal(t)
}
