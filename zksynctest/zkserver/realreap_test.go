package zkserver_test

import (
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// reaping makes a leader look for containers and TTL nodes once a second.
var reaping = []zksynctest.RealOption{zksynctest.RealJVM(
	"-Dznode.container.checkIntervalMs=1000",
	"-Dzookeeper.extendedTypesEnabled=true",
)}

// reaped uses containers and TTL nodes, and records which of them the servers delete.
func (s *script) reaped() {
	r, watcher := s.connect(s.e.Followers()[0], nil), s.connect(s.e.Followers()[1], nil)
	container := func(path string) { s.ask("container "+path, r, zkserver.OpCreateContainer, containerRec(path)) }
	for _, path := range []string{"/never", "/used", "/full", "/multi", "/outer", "/outer/inner", "/session"} {
		container(path)
	}
	for _, path := range []string{"/used/x", "/full/x", "/multi/x", "/outer/inner/x"} {
		s.ask("create "+path, r, zkserver.OpCreate, createRec(path, "", 0))
	}
	holder := s.connect(s.e.Followers()[0], nil)
	s.ask("ephemeral", holder, zkserver.OpCreate, createRec("/session/x", "", 1))
	s.ask("TTL node", r, zkserver.OpCreateTTL, ttlRec("/ttl", time.Millisecond))
	s.ask("TTL node with a child", r, zkserver.OpCreateTTL, ttlRec("/parent", time.Millisecond))
	s.ask("create /parent/x", r, zkserver.OpCreate, createRec("/parent/x", "", 0))
	s.ask("TTL node of a day", r, zkserver.OpCreateTTL, ttlRec("/day", 24*time.Hour))
	s.awaitReaper(r, 2)
	s.remaining("in use", r)

	s.ask("watch", watcher, zkserver.OpExists, watchRec("/used"))
	s.ask("delete /used/x", r, zkserver.OpDelete, deleteRec("/used/x"))
	s.note("event %v", watcher.event())
	s.ask("create in a container that was deleted", r, zkserver.OpCreate, createRec("/used/y", "", 0))
	container("/used")
	p := r.call(zkserver.OpMulti, multi(
		sub(zkserver.OpDelete, deleteRec("/multi/x")), sub(zkserver.OpCreate, createRec("/multi/y", "", 0))))
	s.note("a multi that empties and fills: code %d", p.code)
	s.ask("delete /outer/inner/x", r, zkserver.OpDelete, deleteRec("/outer/inner/x"))
	s.ask("delete /parent/x", r, zkserver.OpDelete, deleteRec("/parent/x"))
	s.ask("close", holder, zkserver.OpCloseSession, nil)
	s.awaitReaper(r, 3) // /outer waits for the time after /outer/inner
	s.remaining("in the end", r)

	leader := s.e.Leader()
	s.ask("delete /full/x", r, zkserver.OpDelete, deleteRec("/full/x"))
	s.e.Kill(leader)
	s.e.WaitLeader(leader)
	s.e.WaitReady()
	r = s.connect(s.e.Followers()[0], nil)
	s.awaitReaper(r, 2)
	s.remaining("at the next leader", r)
}

// awaitReaper waits until the leader has looked for containers a number of times: it uses a
// container, and waits until that one is deleted. The leader deletes in any order, so a znode that
// was due at the first time is gone at the second.
func (s *script) awaitReaper(r *raw, times int) {
	s.t.Helper()
	for range times {
		r.want(0, zkserver.OpCreateContainer, containerRec("/sentinel"))
		r.want(0, zkserver.OpCreate, createRec("/sentinel/x", "", 0))
		r.want(0, zkserver.OpDelete, deleteRec("/sentinel/x"))
		for end := time.Now().Add(time.Minute); r.call(zkserver.OpExists, existsRec("/sentinel")).code == 0; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				s.t.Fatal("the container was not deleted within a minute")
			}
		}
	}
}

// remaining records which of the znodes exist, as of the time of the call.
func (s *script) remaining(when string, r *raw) {
	s.t.Helper()
	r.want(0, zkserver.OpSync, rec{}.str("/"))
	for _, path := range []string{"/never", "/used", "/full", "/multi", "/outer", "/outer/inner", "/session", "/ttl", "/parent", "/day"} {
		s.note("%s: %s is there: %v", when, path, r.call(zkserver.OpExists, existsRec(path)).code == 0)
	}
}
