package enumeration_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/simulation/network"
	"github.com/go-zksync/toolkit/zksynctest/simulation/surroundings"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// answers reports whether a frame answers a request. No server loses one watch event and sends the
// next event.
func answers(f network.Frame) bool { return f.Dir == network.Down && f.Op != network.OpWatchEvent }

// request reports whether a frame is a request that suits.
func request(f network.Frame, suits func(zkserver.OpCode) bool) bool {
	return f.Dir == network.Up && suits(zkserver.OpCode(f.Op))
}

// throttlable reports whether an overloaded server may refuse a frame.
func throttlable(f network.Frame) bool { return request(f, surroundings.Throttlable) }

// commits reports whether a request goes to the leader.
func commits(f network.Frame) bool { return request(f, surroundings.GoesToLeader) }

// writes reports whether a request changes the tree. An internal error before and after a read differ
// in nothing that a client can see.
func writes(f network.Frame) bool { return request(f, surroundings.Writes) }

// reads reports whether a request reads the tree.
func reads(f network.Frame) bool { return request(f, surroundings.Reads) }

// forbiddable reports whether a request needs a permission that an ACL may withhold, and removes nothing:
// a znode that the client may not delete remains.
func forbiddable(f network.Frame) bool {
	switch zkserver.OpCode(f.Op) {
	case zkserver.OpDelete, zkserver.OpMulti, zkserver.OpSync:
		return false
	}
	return throttlable(f)
}

// faultAt returns a Fault that strikes the request f, which is about to arrive.
func (s *stage) faultAt(f network.Frame, do zkserver.Action) zkserver.Fault {
	if zkserver.OpCode(f.Op) == zkserver.OpConnect {
		// The server does not know the connection yet, and the frame is the next one to arrive.
		return zkserver.Fault{Endpoint: s.clients[f.Client].endpoint.Number(), Op: zkserver.OpConnect, At: zkserver.BeforeCommit, Do: do}
	}
	// Each connection counts its requests from the same number on.
	var conn uint64
	for _, op := range slices.Backward(s.server.Ops()) {
		if op.Code == zkserver.OpConnect && op.Session == f.Session {
			conn = op.Conn
			break
		}
	}
	return zkserver.Fault{Session: f.Session, Op: zkserver.OpCode(f.Op), At: zkserver.BeforeCommit, Do: do,
		Match: func(op zkserver.Op) bool { return op.Conn == conn && op.Xid == f.Xid }}
}

// throttle makes the server refuse the request.
func (s *stage) throttle(f network.Frame) { s.server.Inject(s.faultAt(f, zkserver.Throttle)) }

// forbid makes the server refuse the request, as if an ACL withheld a permission for a moment.
func (s *stage) forbid(f network.Frame) {
	// If goroutines are woken at the same instant, another request may have the address of the frame.
	if !forbiddable(f) {
		s.void("the request is another one")
		return
	}
	if zkserver.OpCode(f.Op) == zkserver.OpExists && slices.Contains(s.server.without, zkserver.OpGetEphemerals) {
		s.void("servers before 3.6 refuse no exists")
		return
	}
	if chroot := s.of.world.chroot; chroot != "" && zkserver.OpCode(f.Op) == zkserver.OpExists {
		// The client looks for the chroot, and takes a refusal for a sign that it exists: servers refuse no
		// exists of a znode that does not.
		if _, there := s.server.Server.Get(chroot); !there {
			s.void("there is no chroot yet")
			return
		}
	}
	s.server.Inject(s.faultAt(f, zkserver.Error(zkserver.ErrNoAuth)))
}

// internalError makes the server answer the request with an internal error, before it has carried
// out the request or afterwards.
func internalError(at zkserver.Moment) func(*stage, network.Frame) {
	return func(s *stage, f network.Frame) {
		fault := s.faultAt(f, zkserver.Error(zkserver.ErrSystem))
		fault.At = at
		s.server.Inject(fault)
	}
}

// trouble applies an action to each request of some operations, of all clients, for d.
func trouble(d time.Duration, at zkserver.Moment, do zkserver.Action, ops func(zkserver.OpCode) bool) func(*stage, network.Frame) {
	return func(s *stage, _ network.Frame) {
		match := func(op zkserver.Op) bool { return ops(op.Code) }
		s.heal(d, s.server.Inject(zkserver.Fault{At: at, Do: do, Match: match, Times: -1}).Remove)
	}
}

// quota lets the directories have no more znodes and bytes than they have, for a session timeout.
func (s *stage) quota(network.Frame) {
	server := s.server.Server // quotas are outside the chroot
	all := surroundings.LimitDirectories(server)
	for _, limits := range all {
		s.heal(timeout, func() { s.operator(func() error { return server.Delete(limits) }) })
	}
	if len(all) == 0 {
		s.void("no directory to limit, or no leader")
	}
}

// expire ends the client's session by force.
func (s *stage) expire(f network.Frame) {
	c := s.clients[f.Client]
	if f.Session == 0 || s.server.ExpireSession(f.Session) != nil {
		s.void("no session to expire")
		return
	}
	c.force(f.Session)
}

// lag makes all servers except the client's server fall behind. The client's connection breaks, and
// it connects to one of them.
func (s *stage) lag(f network.Frame) {
	for i := range ensemble {
		e := s.server.Endpoint(1 + i)
		if e != s.clients[f.Client].endpoint {
			e.Lag()
			s.heal(3*timeout, e.CatchUp)
		}
	}
}

// cut cuts the client's server from its leader: if the request goes to the leader, directly after
// the server has forwarded it, and otherwise at once.
func (s *stage) cut(f network.Frame) {
	e := s.clients[f.Client].endpoint
	s.heal(3*timeout, e.Rejoin)
	if commits(f) {
		s.server.Inject(s.faultAt(f, zkserver.CutAfterForward))
		return
	}
	e.CutFromLeader()
}

// strand cuts the client's server like cut, and keeps the client from reaching any other server.
func (s *stage) strand(f network.Frame) {
	s.net.Strand(f.Client, 3*timeout/2)
	s.cut(f)
}

// deposeLeader makes the other servers elect another leader. The client's server, the old leader, does
// not notice, and still answers. It reports whether the client's server was the leader.
func (s *stage) deposeLeader(f network.Frame) bool {
	e := s.clients[f.Client].endpoint
	if s.server.Leader() != e.Number() {
		s.void("the client's server does not lead")
		return false
	}
	s.heal(4*timeout, e.Rejoin)
	s.server.Depose()
	return true
}

func (s *stage) depose(f network.Frame) { s.deposeLeader(f) }

// deposeStrand deposes the leader like depose, and keeps the client from reaching any other server:
// the client connects again to the deposed leader, which accepts it.
func (s *stage) deposeStrand(f network.Frame) {
	if s.deposeLeader(f) {
		s.net.Strand(f.Client, 3*timeout/2)
	}
}

// goesUp reports whether a frame is a request. Faults that do not affect the frame itself strike
// only requests: their effect on a client that waits for an answer is the same.
func goesUp(f network.Frame) bool { return f.Dir == network.Up }

// pauseLeader stops the leader for d. order is the leader's first action when it resumes.
func pauseLeader(d time.Duration, order zkserver.ThawOrder) func(*stage, network.Frame) {
	return func(s *stage, _ network.Frame) {
		n := s.server.Leader()
		if n == 0 {
			s.void("there is no leader")
			return
		}
		s.server.SetThawOrder(order)
		e := s.server.Endpoint(n)
		e.Freeze()
		s.heal(d, e.Thaw)
	}
}

// shorten makes the client negotiate a shorter session timeout at another server, and keeps it from
// reaching any server soon after that.
func (s *stage) shorten(f network.Frame) {
	s.mu.Lock()
	s.shortest = timeout / 2
	s.mu.Unlock()
	for i := range ensemble {
		e := s.server.Endpoint(1 + i)
		if err := e.SetSessionTimeouts(timeout/2, timeout/2); err != nil {
			s.fail("shorten the timeouts: %v", err)
		}
		s.heal(3*timeout, func() { _ = e.SetSessionTimeouts(timeout, timeout) })
	}
	s.background.start(func() {
		s.pause(timeout / 4)
		s.outage(f)
	})
}

// outage keeps the client from reaching any server for longer than the session timeout.
func (s *stage) outage(f network.Frame) {
	s.net.Partition(f.Client, 3*timeout/2)
	s.heal(3*timeout/2, func() {})
}

// heal calls undo after d, and delays the checks until then.
func (s *stage) heal(d time.Duration, undo func()) {
	s.background.start(func() {
		s.pause(d)
		undo()
	})
}

// void records that a fault had no effect.
func (s *stage) void(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nothing = fmt.Sprintf(format, args...)
}

// pause waits for d, or until the stage is torn down.
func (s *stage) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ctx.Done():
	}
}

// after returns a channel that is closed after d.
func (s *stage) after(d time.Duration) <-chan struct{} {
	ctx, cancel := context.WithTimeout(s.ctx, d)
	context.AfterFunc(ctx, cancel)
	return ctx.Done()
}
