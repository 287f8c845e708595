package zkserver_test

import (
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// shorterTimeout restarts a follower with a lower maxSessionTimeout, and has clients reconnect
// there.
func (s *script) shorterTimeout() {
	const long, short = 8 * time.Second, 3 * time.Second
	leader, f := s.e.Leader(), s.e.Followers()
	s.limit(f[0], short)
	s.note("the same leader: %v", s.e.Leader() == leader)
	watcher := s.session(f[1], time.Minute)

	// expires returns the time until the session with the ephemeral at path expires, or 0 if it has.
	expires := func(r *raw, path string) time.Duration {
		began := time.Now()
		if watcher.call(zkserver.OpExists, watchRec(path)).code != 0 {
			return 0
		}
		for {
			if in, _ := s.read(watcher, time.Minute); in == nil || in.i32() == -1 {
				return time.Since(began)
			}
		}
	}
	negotiates := func(path string) *raw {
		r := s.session(f[1], long)
		s.note("the session begins with %d ms", r.timeout)
		r.call(zkserver.OpCreate, createRec(path, "", 1))
		time.Sleep(2 * realTick)
		moved := s.hello(f[0], r, 0, long)
		s.welcome("reconnect", moved)
		s.note("it goes on with %d ms", moved.timeout)
		r.nc.Close()
		return moved
	}

	r := negotiates("/e")
	r.nc.Close()
	after := expires(r, "/e")
	s.note("the leader counts with the shorter timeout: %v", after > short-realTick && after < short+4*realTick)

	// Touches at a follower also use the timeout of the connection.
	r = negotiates("/f")
	time.Sleep(4 * realTick) // the session would soon expire without the touch
	r.call(zkserver.OpPing, nil)
	after = expires(r, "/f")
	s.note("and so it does after a touch: %v", after > short-realTick && after < short+4*realTick)

	r = negotiates("/g")
	r.nc.Close()
	s.e.Kill(leader)
	s.e.WaitLeader(leader)
	watcher = s.connect(f[1], watcher)
	after = expires(r, "/g")
	s.note("the next leader counts with the first timeout: %v", after > long-3*realTick && after < long+6*realTick)
}
