package session

import "time"

// Stats is a snapshot of a Manager, for status pages and gauges. Counters count since
// Connect.
type Stats struct {
	State       string        `json:"state"`
	Since       time.Time     `json:"since"`   // when the State began
	Session     string        `json:"session"` // hexadecimal; empty before the first session
	Server      string        `json:"server"`  // of the connection; empty if there is none
	Timeout     time.Duration `json:"timeout"` // as negotiated
	Deadline    time.Time     `json:"deadline"`
	Connections uint64        `json:"connections"` // connections that were opened
	Lost        uint64        `json:"lost"`        // sessions that were lost
	Requests    uint64        `json:"requests"`    // finished requests
	InFlight    int           `json:"inFlight"`    // requests without an answer
	Abandoned   int           `json:"abandoned"`   // requests in flight whose callers have gone or need not wait
	Held        int           `json:"held"`        // holds: one for all units of an acquisition, and one for the claims of a queue's value
	Watches     int           `json:"watches"`     // watches on the server
	IdleWatches int           `json:"idleWatches"` // those of Watches for which no call waits
	Waits       []WaitStats   `json:"waits"`       // calls that wait for others, the longest wait first
	WaitCount   int           `json:"waitCount"`   // number of these calls: Waits has at most 100
	Servers     []string      `json:"servers"`     // the outcome of the attempts to connect; only while there is no connection
}

// Stats returns the present state of m. It sends no requests.
func (m *Manager) Stats() Stats {
	now := m.present()
	s, st := now.session, Stats{State: now.state.String(), Since: now.stateSince, Lost: now.lost}
	st.Connections, st.Requests = m.connections.Load(), m.requests.Load()
	st.Waits, st.WaitCount = m.waits.list()
	if now.state != Connected {
		st.Servers, _ = m.servers.report()
	}
	// Until then the fields of the identity are not set.
	if s == nil || !s.known.Load() {
		return st
	}
	st.Session, st.Timeout, st.Deadline = sessionID(s.id), s.Timeout(), s.Deadline()
	if w := s.gate.current(); w != nil {
		st.Server, st.InFlight = w.Server, w.Pending()
	}
	// One lock after the other and never two at once, so Stats needs no order of locks.
	s.gate.mu.Lock()
	st.Abandoned = s.gate.abandoned
	s.gate.mu.Unlock()
	s.leases.mu.Lock()
	// A hold ends with its session, and its holder releases it later or never.
	if s.leases.over == nil {
		st.Held = s.leases.held
	}
	s.leases.mu.Unlock()
	s.hub.mu.Lock()
	// An entry outlives its session until the last read of its watch has returned.
	if s.hub.ended == nil {
		st.Watches, st.IdleWatches = len(s.hub.entries), s.hub.idle.Len()
	}
	s.hub.mu.Unlock()
	return st
}
