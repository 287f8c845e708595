package zksynctest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
)

// electionTime bounds the time without a leader after the old leader was killed or has given up.
const electionTime = 5 * time.Second

// A real ensemble elects another leader and serves when its leader is killed or paused.
func TestRealEnsembleSurvivesItsLeader(t *testing.T) {
	bounds.Long(t)
	t.Parallel()
	start := time.Now()
	e := RealZooKeeper(t, 3)
	t.Logf("served after %v", time.Since(start))
	for round, remove := range []func(int){e.Kill, e.Pause, e.Kill} {
		old := e.Leader()
		if old == 0 || len(e.Followers()) != 2 {
			t.Fatalf("leader %d, followers %v", old, e.Followers())
		}
		start = time.Now()
		remove(old)
		leader := e.WaitLeader(old)
		took := time.Since(start)
		t.Logf("round %d: server %d leads %v after server %d was removed", round, leader, took, old)
		// The followers give up a paused leader only after syncLimit ticks.
		if took > electionTime+5*500*time.Millisecond {
			t.Errorf("the next leader took %v", took)
		}
		client := openSession(t, e.Addr(leader), 4*time.Second, nil)
		if err := client.create(fmt.Sprintf("/round%d", round), answerTime); err != nil {
			t.Errorf("create with two servers: %v", err)
		}
		start = time.Now()
		if round == 1 {
			e.Resume(old)
		} else {
			e.Start(old)
		}
		e.WaitReady()
		t.Logf("round %d: three members again after %v", round, time.Since(start))
	}
}

// A follower that is cut off from its leader gets nothing through the cut and returns after Heal.
func TestRealCutFollower(t *testing.T) {
	t.Parallel()
	const (
		tick      = 500 * time.Millisecond
		syncLimit = 5
	)
	e := RealZooKeeper(t, 3, RealTickTime(tick), RealSyncLimit(syncLimit))
	leader := e.Leader()
	cut, other := e.Followers()[0], e.Followers()[1]
	client := openSession(t, e.Addr(cut), 20*time.Second, nil)
	writer := openSession(t, e.Addr(cut), 20*time.Second, nil)
	start := time.Now()
	e.Cut(leader, cut)
	if err := writer.create("/lost", 500*time.Millisecond); !isSilence(err) {
		t.Errorf("create by way of a follower without a leader: %v", err)
	}
	var last time.Time
	eventually(t, "the follower to drop its clients", answerTime, func() bool {
		if client.ping(answerTime) != nil {
			return true
		}
		last = time.Now()
		return false
	})
	t.Logf("the follower answered pings for %v, syncLimit is %v", last.Sub(start), syncLimit*tick)
	if held := last.Sub(start); held < (syncLimit-2)*tick || held > (syncLimit+3)*tick {
		t.Errorf("the follower answered pings for %v; syncLimit is %v", held, syncLimit*tick)
	}
	if now := e.Leader(); now != leader {
		t.Errorf("server %d leads; server %d did, and kept a follower", now, leader)
	}
	if followers := e.Followers(); !slices.Equal(followers, []int{other}) {
		t.Errorf("followers %v, want only %d", followers, other)
	}
	start = time.Now()
	e.Heal(cut, leader)
	e.WaitReady()
	t.Logf("three members again %v after the link was healed", time.Since(start))
	if err := openSession(t, e.Addr(cut), 4*time.Second, nil).create("/kept", answerTime); err != nil {
		t.Errorf("create after the link was healed: %v", err)
	}
}

// A leader that is cut off from all followers loses its role to one of the followers.
func TestRealCutLeaderOff(t *testing.T) {
	bounds.Long(t)
	t.Parallel()
	e := RealZooKeeper(t, 3, RealTickTime(300*time.Millisecond))
	old := e.Leader()
	client := openSession(t, e.Addr(old), 20*time.Second, nil)
	for _, follower := range e.Followers() {
		e.Cut(old, follower)
	}
	start := time.Now()
	leader := e.WaitLeader(old)
	t.Logf("server %d leads after %v", leader, time.Since(start))
	if err := openSession(t, e.Addr(leader), 4*time.Second, nil).create("/next", answerTime); err != nil {
		t.Errorf("create under the next leader: %v", err)
	}
	eventually(t, "the old leader to drop its clients", answerTime, func() bool {
		return client.ping(answerTime) != nil
	})
	if now := e.Leader(); now != leader {
		t.Errorf("server %d leads, not %d", now, leader)
	}
	start = time.Now()
	e.HealAll()
	e.WaitReady()
	t.Logf("three members again after %v", time.Since(start))
}

// All traffic between servers passes the links: with all links cut there is no quorum. With a path
// around the links, two servers would still make a quorum.
func TestRealCutAll(t *testing.T) {
	bounds.Long(t)
	t.Parallel()
	e := RealZooKeeper(t, 3, RealTickTime(200*time.Millisecond), RealSyncLimit(3))
	// A server that joins dials the servers with higher numbers, and they dial back.
	for i := 1; i <= 2; i++ {
		e.Restart(i)
		e.WaitReady()
	}
	for round := range 2 {
		for _, ends := range [][2]int{{1, 2}, {2, 3}, {1, 3}} {
			e.Cut(ends[0], ends[1])
		}
		eventually(t, "all servers to give up", answerTime, func() bool {
			return e.Leader() == 0 && len(e.Followers()) == 0
		})
		marks := []int{len(e.Log(1)), len(e.Log(2)), len(e.Log(3))}
		// Elections start repeatedly; none may succeed.
		quiet := time.Now().Add(2 * time.Second)
		eventually(t, "the end of the quiet time", answerTime, func() bool {
			if leader, followers := e.Leader(), e.Followers(); leader != 0 || len(followers) != 0 {
				t.Fatalf("leader %d and followers %v across cut links", leader, followers)
			}
			return time.Now().After(quiet)
		})
		for i, mark := range marks {
			wantNoVotes(t, i+1, e.Log(i + 1)[mark:])
		}
		start := time.Now()
		if round == 0 {
			e.Heal(1, 3) // a chain: 1 and 3 make a quorum without 2
			leader := e.WaitLeader()
			t.Logf("server %d leads %v after one link was healed", leader, time.Since(start))
			if leader == 2 {
				t.Error("a server that reaches no other leads")
			}
		}
		start = time.Now()
		e.HealAll()
		e.WaitReady()
		t.Logf("three members again %v after all were healed", time.Since(start))
	}
}

// wantNoVotes requires that the log of server i has no vote of another server. Servers tell each
// other their addresses, and could find a path around the links with them.
func wantNoVotes(t *testing.T, i int, log string) {
	t.Helper()
	if !strings.Contains(log, fmt.Sprintf("n.sid:%d,", i)) {
		t.Logf("server %d has not logged its own vote: other votes may be missed, too", i)
	}
	for other := 1; other <= 3; other++ {
		if other != i && strings.Contains(log, fmt.Sprintf("n.sid:%d,", other)) {
			t.Errorf("server %d heard server %d across a cut link:\n%s", i, other, log)
		}
	}
}

// Cut, Heal, Reset and Delay of the link between two servers have their effects when they return.
func TestRealPeerLinks(t *testing.T) {
	bounds.Long(t)
	t.Parallel()
	e := RealZooKeeper(t, 3)
	leader, follower := e.Leader(), e.Followers()[0]
	client := openSession(t, e.Addr(follower), 20*time.Second, nil)
	const delay = 60 * time.Millisecond
	e.Delay(leader, follower, delay)
	start := time.Now()
	if err := client.create("/slow", answerTime); err != nil || time.Since(start) < 2*delay {
		t.Errorf("a create over a delayed link took %v: %v", time.Since(start), err)
	}
	e.Delay(follower, leader, 0)
	e.Reset(leader, follower)
	e.WaitReady()
	if err := client.ping(answerTime); err == nil || isSilence(err) {
		t.Errorf("ping a follower that lost its leader: %v", err)
	}
	// Cold start: a single server answers, and the second server makes a quorum.
	for i := 1; i <= 3; i++ {
		e.Kill(i)
	}
	e.Start(1)
	if leader, followers := e.Leader(), e.Followers(); leader != 0 || len(followers) != 0 {
		t.Errorf("leader %d, followers %v, of one server in three", leader, followers)
	}
	e.Start(2)
	openSession(t, e.Addr(2), 4*time.Second, nil)
	e.Restart(3)
	e.WaitReady()
}
