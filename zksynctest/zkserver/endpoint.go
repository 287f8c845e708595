package zkserver

import (
	"fmt"
	"net/netip"
	"time"
)

// Endpoint is one server of an ensemble: what clients connect to. A [Server] that
// [New] made has one. Its methods may be called from any goroutine.
type Endpoint struct {
	s      *Server
	number int // from 1
	addr   netip.AddrPort

	// Guarded by the server's mu.
	nextID      int64
	perIP       map[string]int
	listeners   []*listener
	down        bool
	thaw        chan struct{} // not nil while frozen; closed by Thaw
	apart       bool          // no link to the others works
	unreachable bool          // for clients
	member      bool          // it believes that it belongs to a quorum
	last        int64         // the zxid it had when it was a member for the last time
	lost        time.Time     // when it ceased to be one
	rep         *replica
	doubt       *timer // at the end of which it is a member no more
	heard       map[int64]*session
	stats       packetStats
	traceMask   int64
	report      *timer // when its leader asks for the sessions it has heard of
	overdue     bool   // it has asked, and was not told yet
}

// firstPort is the port of the first endpoint's address in memory; those of the
// others follow.
const firstPort = 2181

func (en *ensemble) addEndpoint(now time.Time) {
	e := &Endpoint{
		s:      en.s,
		number: len(en.endpoints) + 1,
		perIP:  map[string]int{},
		heard:  map[int64]*session{},

		traceMask: defaultTraceMask,
	}
	e.addr = netip.AddrPortFrom(memoryAddr.Addr(), uint16(firstPort+len(en.endpoints)))
	e.nextID = firstSessionID(now, e.number)
	e.rep = en.addReplica(e)
	en.endpoints = append(en.endpoints, e)
}

// Endpoint returns server i of the ensemble, counted from 1. Another number
// panics.
func (s *Server) Endpoint(i int) *Endpoint {
	if i < 1 || i > len(s.en.endpoints) {
		panic(fmt.Sprintf("zkserver: there is no endpoint %d, they are numbered from 1 to %d", i, len(s.en.endpoints)))
	}
	return s.en.endpoints[i-1]
}

// Size is the number of endpoints.
func (s *Server) Size() int { return len(s.en.endpoints) }

// Number is what [Server.Endpoint] knows the endpoint by.
func (e *Endpoint) Number() int { return e.number }

// Addr is the address at which [Server.Dial] finds the endpoint: 127.0.0.1:2181
// for the first one, 127.0.0.1:2182 for the next.
func (e *Endpoint) Addr() string { return e.addr.String() }

// Zxid is the latest transaction that the endpoint knows of.
func (e *Endpoint) Zxid() int64 {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	return e.s.en.zxidOf(e.rep)
}

// Serving tells whether the endpoint serves clients: as the leader, as a follower,
// or as one that was cut off and has not found out yet.
func (e *Endpoint) Serving() bool {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	return e.member && e.thaw == nil
}

// Lag makes the endpoint see the tree as it is now, as a follower does whose leader
// is ahead of it: reads are stale and watch events late. It ends with the first
// sync, write or new session of one of its clients, which see what they wrote; with
// [Endpoint.CatchUp], and with a restart or a new leader. On catching up, watches
// fire for what was missed in the order in which it happened. Clients that have
// seen later transactions are refused meanwhile. What its clients send still
// counts as life of their sessions.
func (e *Endpoint) Lag() {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	if e.member {
		e.s.en.fallBehind(e.rep)
	}
}

// CatchUp ends what [Endpoint.Lag] began.
func (e *Endpoint) CatchUp() {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	if e.member && !e.rep.cut {
		e.s.en.awaken(e.rep)
	}
}

// CutFromLeader cuts the endpoint off from all the others, until
// [Endpoint.Rejoin]. For [Config.SyncLimit] ticks it does not know: it answers pings
// and reads, from the tree as it was; syncs, writes and new connections get no
// answer, and neither does what comes behind them, since answers come in order; and
// the leader hears nothing of its sessions, which expire while their connections
// stay open and are answered. Then it closes its connections, and new ones at their
// first request. A leader that is cut off, and so loses its quorum, does the same;
// the others do too, and then choose another leader.
func (e *Endpoint) CutFromLeader() {
	e.s.en.relink(func() { e.apart = true })
}

// CutFromClients swallows what the endpoint and its clients send each other, until
// [Endpoint.HealClients]: connections stay open, new ones can be made, and lead
// nowhere. The endpoint goes on as a member of the ensemble.
func (e *Endpoint) CutFromClients() {
	s := e.s
	s.mu.Lock()
	defer s.mu.Unlock()
	e.unreachable = true
	for _, c := range s.connsOn(e) {
		if !c.hole.Load() {
			s.swallow(c, c.sessionID())
		}
	}
}

// HealClients ends what [Endpoint.CutFromClients] began. What was swallowed stays
// so: the connections that lived through it are closed.
func (e *Endpoint) HealClients() {
	s := e.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.unreachable {
		e.unreachable = false
		s.heal(func(c *conn) bool { return c.ep == e && !s.partitioned[s.holes[c]] })
	}
}

// DisconnectClients closes the connections of the endpoint. New ones can be made.
func (e *Endpoint) DisconnectClients() {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	for _, c := range e.s.connsOn(e) {
		if !c.hole.Load() {
			e.s.hangUp(c)
		}
	}
}

// Rejoin ends what [Endpoint.CutFromLeader] began. Its connections are closed.
func (e *Endpoint) Rejoin() {
	e.s.en.relink(func() { e.apart = false })
}
