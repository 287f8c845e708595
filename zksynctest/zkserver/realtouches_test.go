package zkserver_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// bucket returns when the leader expires the session if it hears nothing more.
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

// touches looks at the session tracker of the leader after whatever may touch a
// session, with a tick of a second.
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
	for _, c := range []struct {
		name   string
		server int
		do     func(*raw) *raw
	}{
		{"ping to the leader", leader, request(zkserver.OpPing, nil)},
		{"write to the leader", leader, request(zkserver.OpSetData, setRec("/"))},
		{"auth with the leader", leader, request(zkserver.OpAuth, auth)},
		{"ping to a follower", f[0], request(zkserver.OpPing, nil)},
		{"sync with a follower", f[0], request(zkserver.OpSync, rec{}.str("/"))},
		{"write to a follower", f[0], request(zkserver.OpSetData, setRec("/"))},
		{"auth with a follower", f[0], request(zkserver.OpAuth, auth)},
		{"reconnect to a follower", f[0], reconnect(f[0])},
		{"reconnect to another follower", f[0], reconnect(f[1])},
	} {
		r := s.connect(c.server, nil)
		// A report may happen to come between the request and the look at the tracker:
		// once is enough for a request that touches nothing at once.
		atOnce, inTime := true, false
		for range 3 {
			time.Sleep(1600 * time.Millisecond) // so that a touch moves the session
			before := s.bucket(r.id)
			r = c.do(r)
			if s.bucket(r.id) == before {
				atOnce = false
				time.Sleep(600 * time.Millisecond) // until the next report
				inTime = s.bucket(r.id) != before
				break
			}
		}
		s.note("%s: the leader hears of it at once %v, with the next report %v", c.name, atOnce, inTime)
	}
	s.touchesOfNewSessions(leader)
}

// touchesOfNewSessions notes whether the leader hears once more of a session that was
// just created at the leader itself, and whose client is silent.
func (s *script) touchesOfNewSessions(leader int) {
	again := false
	for i := 0; i < 20 && !again; i++ {
		time.Sleep(time.Duration(i) * 50 * time.Millisecond)
		r := s.session(leader, 10500*time.Millisecond)
		before := s.bucket(r.id)
		time.Sleep(600 * time.Millisecond)
		again = s.bucket(r.id) != before
	}
	s.note("followers report a new session of the leader: %v", again)
}
