package faults

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// crowd opens sessions on a server and drops their connections, so that many sessions expire at
// about the same time as a session that pings now.
func (s *stage) crowd(server int) {
	s.t.Helper()
	const atOnce = 16
	n := s.size.crowd
	addr := s.e.DirectAddr(server)
	var opened atomic.Int64
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for opened.Add(1) <= int64(n) {
				conn, err := openSession(s.t.Context(), addr, s.size.timeout)
				if err != nil {
					s.t.Errorf("open one of %d sessions on server %d: %v", n, server, err)
					return
				}
				conn.Close()
			}
		})
	}
	wg.Wait()
	s.note(time.Now(), "%d more sessions were opened on server %d and left", n, server)
}

// sweep notes the time that a server took to end the sessions that were due when it resumed, from
// its log after the first mark bytes. The lease assumes less than T/4.
func (s *stage) sweep(at time.Time, server, mark int) {
	const expiring, clock = "Expiring session", "15:04:05.000"
	var first, last time.Time
	n := 0
	for line := range strings.Lines(s.e.Log(server)[mark:]) {
		if !strings.Contains(line, expiring) || len(line) < len(clock) {
			continue
		}
		ended, err := time.Parse(clock, line[:len(clock)])
		if err != nil || n > 0 && ended.Sub(last) > s.size.tick/2 {
			break // belongs to a later sweep
		}
		if n == 0 {
			first = ended
		}
		last = ended
		n++
	}
	s.note(at, "server %d ended %d sessions within %v", server, n, last.Sub(first))
}
