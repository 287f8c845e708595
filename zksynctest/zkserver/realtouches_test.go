package zkserver_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// bucket returns the time at which the leader expires the session without further touches.
func (s *script) bucket(id int64) string {
	s.t.Helper()
	expires, session := "", fmt.Sprintf("\t0x%x", id)
	for line := range strings.Lines(s.command(s.e.Leader(), "dump")) {
		switch line = strings.TrimRight(line, "\n"); {
		case strings.HasPrefix(line, "ephemeral nodes"):
			return ""
		case strings.Contains(line, " expire at "):
			_, expires, _ = strings.Cut(line, " expire at ")
		case line == session:
			return expires
		}
	}
	return ""
}

// toucher is an action of a client, and whether the leader hears of the client's session because of
// the action.
type toucher struct {
	name   string
	server int
	do     func(*raw) *raw

	client         *raw
	before         string
	moved          bool // in this round
	atOnce, inTime bool // in all rounds; with a later report
}

// touches compares the session tracker of the leader before and after each action that may touch a
// session. The tick is a second.
func (s *script) touches() {
	leader, f := s.e.Leader(), s.e.Followers()
	request := func(op zkserver.OpCode, body []byte) func(*raw) *raw {
		return func(r *raw) *raw {
			r.call(op, body)
			return r
		}
	}
	reconnect := func(i int) func(*raw) *raw {
		return func(r *raw) *raw { return s.connect(i, r) }
	}
	auth := rec{}.i32(0).str("digest").str("a:b")
	touchers := []*toucher{
		{name: "ping to the leader", server: leader, do: request(zkserver.OpPing, nil)},
		{name: "write to the leader", server: leader, do: request(zkserver.OpSetData, setRec("/"))},
		{name: "auth with the leader", server: leader, do: request(zkserver.OpAuth, auth)},
		{name: "ping to a follower", server: f[0], do: request(zkserver.OpPing, nil)},
		{name: "sync with a follower", server: f[0], do: request(zkserver.OpSync, rec{}.str("/"))},
		{name: "write to a follower", server: f[0], do: request(zkserver.OpSetData, setRec("/"))},
		{name: "auth with a follower", server: f[0], do: request(zkserver.OpAuth, auth)},
		{name: "reconnect to a follower", server: f[0], do: reconnect(f[0])},
		{name: "reconnect to another follower", server: f[1], do: reconnect(f[1])},
	}
	for _, c := range touchers {
		c.client, c.atOnce = s.connect(c.server, nil), true
	}
	// A report may come between a request and the look at the tracker. A request that touches at
	// once does so in every round.
	for range 4 {
		time.Sleep(1600 * time.Millisecond) // so that a touch moves the session
		for _, c := range touchers {
			c.before = s.bucket(c.client.id)
		}
		for _, c := range touchers {
			c.client = c.do(c.client)
			c.moved = s.bucket(c.client.id) != c.before
			c.atOnce = c.atOnce && c.moved
		}
		time.Sleep(600 * time.Millisecond) // until the next report
		for _, c := range touchers {
			c.inTime = c.inTime || !c.moved && s.bucket(c.client.id) != c.before
		}
	}
	for _, c := range touchers {
		s.note("%s: the leader hears of it at once %v, with the next report %v", c.name, c.atOnce, c.inTime)
	}
	s.touchesOfNewSessions(leader)
	// A follower knows the sessions, but not when they expire.
	line, _, _ := strings.Cut(strings.TrimPrefix(s.command(f[0], "dump"), "SessionTracker dump:\n"), "(")
	s.note("a follower's dump begins with %q", line)
}

// touchesOfNewSessions records whether the leader hears again of new sessions that were created at
// the leader itself and whose clients are silent.
func (s *script) touchesOfNewSessions(leader int) {
	again := false
	// A busy server creates and reports late, so that no session crosses a limit in that round.
	for round := 0; round < 4 && !again; round++ {
		before := map[int64]string{}
		for i := range 10 {
			time.Sleep(130 * time.Millisecond)
			// The leader rounds the end of a session up to a multiple of the tick. With different
			// timeouts, some sessions cross such a multiple between creation and report, at any
			// time of the reports.
			r := s.session(leader, 10*time.Second+time.Duration(i)*100*time.Millisecond)
			before[r.id] = s.bucket(r.id)
		}
		time.Sleep(600 * time.Millisecond)
		for id, bucket := range before {
			again = again || s.bucket(id) != bucket
		}
	}
	s.note("followers report a new session of the leader: %v", again)
}
