package zksynctest

import (
	"testing"
	"time"
)

// LastSent reports when a server or a client last sent something to a server, for each direction.
func TestRealLastSent(t *testing.T) {
	t.Parallel()
	const tick = 300 * time.Millisecond
	e := RealZooKeeper(t, 3, RealTickTime(tick))
	leader, follower := e.Leader(), e.Followers()[0]
	for _, way := range [][2]int{{leader, follower}, {follower, leader}} {
		before := e.LastSent(way[0], way[1])
		eventually(t, "the next ping", answerTime, func() bool { return e.LastSent(way[0], way[1]).After(before) })
	}
	// The leader still sends to a paused follower for some ticks.
	e.Pause(follower)
	var quiet time.Time
	for range 2 {
		quiet = e.LastSent(follower, leader)
		before := e.LastSent(leader, follower)
		eventually(t, "a ping to the paused server", answerTime, func() bool { return e.LastSent(leader, follower).After(before) })
	}
	if at := e.LastSent(follower, leader); !at.Equal(quiet) {
		t.Errorf("server %d sent something %v after it was quiet, while it was paused", follower, at.Sub(quiet))
	}
	e.Resume(follower)
	if at := e.LastSent(Client, leader); !at.IsZero() {
		t.Errorf("a client sent something at %v, and there is none", at)
	}
	began := time.Now()
	openSession(t, e.Addr(leader), 2*time.Second, nil)
	if at := e.LastSent(Client, leader); at.Before(began) || at.After(time.Now()) {
		t.Errorf("a client opened a session after %v, and LastSent says %v", began, at)
	}
}
