package zkserver

import (
	"fmt"
	"math"
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
	in          *leadership   // to which it belongs, as far as it knows; nil while it looks for a leader
	cutOff      bool          // its connection with its leader is broken, which it has not noticed
	doubt       *timer        // at the end of which that connection is given up
	last        int64         // the zxid it had when it had a leader for the last time
	lost        time.Time     // when it lost that leader
	rep         *replica
	touches     map[int64]touched // of sessions, since its last report
	overdue     bool              // its leader has asked for a report, and did not get it yet
	minTimeout  time.Duration
	maxTimeout  time.Duration
	stats       packetStats
	traceMask   int64
}

// firstPort is the port of the first endpoint's address in memory; those of the
// others follow.
const firstPort = 2181

func (en *ensemble) addEndpoint(now time.Time) {
	e := &Endpoint{
		s:       en.s,
		number:  len(en.endpoints) + 1,
		perIP:   map[string]int{},
		touches: map[int64]touched{},

		minTimeout: en.s.cfg.MinSessionTimeout,
		maxTimeout: en.s.cfg.MaxSessionTimeout,
		traceMask:  defaultTraceMask,
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
	return e.in != nil && e.thaw == nil
}

// SetSessionTimeouts bounds the timeouts that clients negotiate at this endpoint from
// now on, as a restart with another minSessionTimeout and maxSessionTimeout does. A
// client that reconnects may get a shorter timeout than before. Its leader then counts
// with that; the next leader counts with the timeout with which the session was
// created, until the client reconnects. Connections that are open keep what they have.
// Bounds that are not positive, or of which max is less than min, are an error.
func (e *Endpoint) SetSessionTimeouts(min, max time.Duration) error {
	if min <= 0 || max < min || max.Milliseconds() > math.MaxInt32 {
		return fmt.Errorf("zkserver: session timeouts from %v to %v: min must be positive, and max between min and 2^31 ms", min, max)
	}
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	e.minTimeout, e.maxTimeout = min, max
	return nil
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
	if e.in != nil {
		e.s.en.fallBehind(e.rep)
	}
}

// CatchUp ends what [Endpoint.Lag] began.
func (e *Endpoint) CatchUp() {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	if e.in != nil && !e.rep.cut {
		e.s.en.awaken(e.rep)
	}
}

// CutFromLeader cuts the endpoint off from all the others, until
// [Endpoint.Rejoin]. For [Config.SyncLimit] ticks the endpoint does not know: it
// answers pings and reads, from the tree as it was; syncs, writes and new connections
// get no answer, and neither do later requests of the same session, since answers
// come in order; and the leader hears nothing of its sessions, which expire while
// their connections stay open and are answered. Then the endpoint closes its
// connections, and new ones at their ConnectRequest. For a leader that is cut off see
// [Server.Depose]: here the others do not know either, and elect another leader after
// [Config.SyncLimit] ticks.
func (e *Endpoint) CutFromLeader() {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
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
	for _, c := range s.conns.on(e) {
		if !c.hole.Load() {
			c.swallow(c.sessionID())
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
		s.conns.heal(func(c *conn) bool { return c.ep == e && !s.conns.partitioned[s.conns.holes[c]] })
	}
}

// DisconnectClients closes the connections of the endpoint. New ones can be made.
func (e *Endpoint) DisconnectClients() {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	for _, c := range e.s.conns.on(e) {
		if !c.hole.Load() {
			c.hangUp()
		}
	}
}

// Rejoin ends what [Endpoint.CutFromLeader], [CutAfterForward] and [Server.Depose]
// began. A follower closes its connections with clients at once, and so does a leader
// that has lost its quorum when it counts its followers next, within a tick.
func (e *Endpoint) Rejoin() {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	e.s.en.relink(func() { e.apart = false })
}

// touched is what a follower has heard of a session since its last report.
type touched struct {
	timeout time.Duration // of the connection over which it was heard of last
	times   int
}

// memoryAddr is where an in-memory connection seems to go when the address that
// was dialed is not an IP with a port.
var memoryAddr = netip.MustParseAddrPort("127.0.0.1:2181")

// defaultTraceMask is what a real server starts with; nothing is traced here.
const defaultTraceMask = 306
