package zkserver

import (
	"fmt"
	"math"
	"net/netip"
	"time"
)

// Endpoint is one server of an ensemble. Clients connect to an Endpoint. A [Server] that [New]
// created has one Endpoint. The methods of an Endpoint may be called from any goroutine.
type Endpoint struct {
	s      *Server
	number int // from 1
	addr   netip.AddrPort

	// Guarded by the server's mu.
	nextID      int64
	perIP       map[string]int
	listeners   []*listener
	down        bool
	thaw        chan struct{} // not nil while frozen; Thaw closes it
	apart       bool          // all links to other endpoints are cut
	unreachable bool          // for clients
	in          *leadership   // leadership that e believes it belongs to; nil while e looks for a leader
	cutOff      bool          // its connection with its leader is broken, and e has not noticed
	doubt       *timer        // expires when e gives up that connection
	last        int64         // its zxid when it last had a leader
	lost        time.Time     // when it lost that leader
	rep         *replica
	touches     map[int64]touched // touches of sessions since the last report
	overdue     bool              // its leader has asked for a report and not yet received it
	minTimeout  time.Duration
	maxTimeout  time.Duration
	stats       packetStats
	traceMask   int64
}

// firstPort is the port of the first endpoint's in-memory address; each further endpoint has the
// next port.
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

// Endpoint returns server i of the ensemble, counted from 1. Endpoint panics for an unknown number.
func (s *Server) Endpoint(i int) *Endpoint {
	if i < 1 || i > len(s.en.endpoints) {
		panic(fmt.Sprintf("zkserver: there is no endpoint %d, they are numbered from 1 to %d", i, len(s.en.endpoints)))
	}
	return s.en.endpoints[i-1]
}

// Size returns the number of endpoints.
func (s *Server) Size() int { return len(s.en.endpoints) }

// Number returns the number of the endpoint, as [Server.Endpoint] takes it.
func (e *Endpoint) Number() int { return e.number }

// Addr returns the address at which [Server.Dial] finds the endpoint: 127.0.0.1:2181 for the first
// endpoint, 127.0.0.1:2182 for the second.
func (e *Endpoint) Addr() string { return e.addr.String() }

// Zxid returns the zxid of the latest transaction that the endpoint has.
func (e *Endpoint) Zxid() int64 {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	return e.s.en.zxidOf(e.rep)
}

// Serving reports whether the endpoint serves clients: as the leader, as a follower, or because it
// has not noticed that it was cut off.
func (e *Endpoint) Serving() bool {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	return e.in != nil && e.thaw == nil
}

// SetSessionTimeouts bounds the timeouts that clients negotiate at this endpoint from now on, like
// a restart with another minSessionTimeout and maxSessionTimeout. A client that reconnects may get
// a shorter timeout than before. The current leader then uses the shorter timeout. The next leader
// uses the timeout with which the session was created, until the client reconnects. Open
// connections keep their timeouts. SetSessionTimeouts returns an error if a bound is less than a
// millisecond or max is less than min.
func (e *Endpoint) SetSessionTimeouts(min, max time.Duration) error {
	if min < time.Millisecond || max < min || max.Milliseconds() > math.MaxInt32 {
		return fmt.Errorf("zkserver: session timeouts from %v to %v: min must be at least 1ms, and max between min and 2^31 ms", min, max)
	}
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	e.minTimeout, e.maxTimeout = min, max
	return nil
}

// Lag freezes the endpoint's view of the tree, like a follower whose leader is ahead: reads are
// stale and watch events are late. The first sync, write or new session of a client of the endpoint
// ends the lag, and the client sees its own write. [Endpoint.CatchUp], a restart and a new leader
// also end the lag. When the endpoint catches up, watches fire for the missed changes in their
// order. While it lags, the endpoint refuses clients that have seen later transactions. Requests of
// its clients still keep their sessions alive.
func (e *Endpoint) Lag() {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	if e.in == nil {
		return
	}
	// A session that has lagged on its own keeps its own replica while its connection lives.
	for _, r := range e.s.en.replicas {
		if r.ep == e {
			e.s.en.fallBehind(r)
			r.asleep = false // the end of a freeze does not end the lag
		}
	}
}

// CatchUp ends the lag that [Endpoint.Lag] began.
func (e *Endpoint) CatchUp() {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	if e.in != nil {
		e.s.en.endLagAt(e)
	}
}

// CutFromLeader cuts all links of the endpoint to the other endpoints, until [Endpoint.Rejoin]. For
// [Config.SyncLimit] ticks the endpoint does not notice. During this time it answers pings and
// reads from the tree as of the cut. Syncs, writes and new connections get no answer, and neither
// do later requests of the same session, because answers come in order. The leader hears nothing of
// the endpoint's sessions, which expire while their connections stay open. Then the endpoint closes
// its connections, and closes new connections at their ConnectRequest.
//
// If the endpoint leads, see [Server.Depose] for its answers. Unlike after Depose, the other
// endpoints do not notice the cut at once; they elect another leader after [Config.SyncLimit]
// ticks.
func (e *Endpoint) CutFromLeader() {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	e.s.en.relink(func() { e.apart = true })
}

// CutFromClients drops all bytes between the endpoint and its clients, until
// [Endpoint.HealClients]. Connections stay open, and new connections can be opened but get no
// answer. The endpoint stays a member of the ensemble.
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

// HealClients ends the cut that [Endpoint.CutFromClients] began. Dropped bytes stay lost:
// HealClients closes the connections that were open during the cut.
func (e *Endpoint) HealClients() {
	s := e.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.unreachable {
		e.unreachable = false
		s.conns.heal(func(c *conn) bool { return c.ep == e && !s.conns.partitioned[s.conns.holes[c]] })
	}
}

// DisconnectClients closes the connections of the endpoint. Clients may connect again.
func (e *Endpoint) DisconnectClients() {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	for _, c := range e.s.conns.on(e) {
		if !c.hole.Load() {
			c.hangUp()
		}
	}
}

// Rejoin ends a cut that [Endpoint.CutFromLeader], [CutAfterForward] or [Server.Depose] began. A
// follower closes its client connections at once. A leader that has lost its quorum closes them
// when it next counts its followers, within a tick.
func (e *Endpoint) Rejoin() {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	e.s.en.relink(func() { e.apart = false })
}

// touched is a follower's record of a session's touches since its last report.
type touched struct {
	timeout time.Duration // of the connection of the latest touch
	times   int
}

// memoryAddr is the address of the server's end of an in-memory connection if the dialed address is
// not an IP with a port.
var memoryAddr = netip.MustParseAddrPort("127.0.0.1:2181")

// defaultTraceMask is the default trace mask of a real server; this server traces nothing.
const defaultTraceMask = 306
