package zkserver

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// unlimited disables a limit of [Config] that has a default.
const unlimited = -1

const (
	defaultMaxConns       = 10_000
	defaultMaxAnswer      = 64 << 20
	defaultMaxQueued      = 128 << 20
	defaultMaxQueuedTotal = 512 << 20
	defaultOpsBytes       = 64 << 20
)

// limits validates the limits that have a default, and fills in the defaults.
func (cfg *Config) limits() error {
	for _, l := range []struct {
		field  string
		value  *int
		normal int
		least  int
	}{
		{"MaxConns", &cfg.MaxConns, defaultMaxConns, 1},
		{"MaxAnswer", &cfg.MaxAnswer, defaultMaxAnswer, 1024},
		{"MaxQueued", &cfg.MaxQueued, defaultMaxQueued, 1024},
		{"MaxQueuedTotal", &cfg.MaxQueuedTotal, defaultMaxQueuedTotal, 1024},
		{"OpsBytes", &cfg.OpsBytes, defaultOpsBytes, 1},
	} {
		*l.value = cmp.Or(*l.value, l.normal)
		if *l.value < l.least && *l.value != unlimited {
			return fmt.Errorf("zkserver: Config.%s is %d: it must be at least %d, 0 for %d, or -1 for no limit", l.field, *l.value, l.least, l.normal)
		}
	}
	return nil
}

// full returns the limit that forbids another connection from ip to e, or "". The caller holds mu.
func (s *Server) full(e *Endpoint, ip string) string {
	if limit := s.cfg.MaxClientConns; limit > 0 && e.perIP[ip] >= limit {
		return fmt.Sprintf("%s has %d connections (Config.MaxClientConns)", ip, limit)
	}
	if limit := s.cfg.MaxConns; limit > 0 && len(s.conns.open)+len(s.conns.closing) >= limit {
		return fmt.Sprintf("there are %d connections (Config.MaxConns)", limit)
	}
	return ""
}

// checkQueue closes a connection with too many queued bytes: c, which was just pushed to, or the
// connection with the most queued bytes. The caller holds mu, and may be firing watches.
func (c *conn) checkQueue() {
	s := c.s
	if limit := s.cfg.MaxQueued; limit > 0 && c.out.over(limit) {
		c.overflow(fmt.Sprintf("more than %d bytes waited for it to read (Config.MaxQueued)", limit))
	}
	limit := s.cfg.MaxQueuedTotal
	if limit <= 0 || s.conns.queued.Load() <= int64(limit) {
		return
	}
	worst, most, sum := c, 0, 0
	for _, conns := range []map[*conn]struct{}{s.conns.open, s.conns.closing} {
		for other := range conns {
			n := other.out.waiting()
			if sum += n; n > most {
				worst, most = other, n
			}
		}
	}
	// The sum may be less than the number of queued bytes, which changes meanwhile. One answer of any
	// size may be queued, as with MaxQueued.
	if sum <= limit || most == sum && !worst.out.over(limit) {
		return
	}
	worst.overflow(fmt.Sprintf("%d bytes waited for it to read, of more than %d for all (Config.MaxQueuedTotal)", most, limit))
}

// overflow drops the output of c and wakes its goroutines to close c: one may wait for requests and
// the other for the peer to read. overflow does not call hangUp, which would change the watches
// while they fire.
func (c *conn) overflow(why string) {
	c.why = why
	c.out.end()
	c.out.kick()
	// A deadline in the past ends a Read and a Write that block.
	_ = c.nc.SetDeadline(time.Unix(1, 0))
}

// awaitReader holds back the next request of a client with more than mayWait queued bytes, until
// the client has read them. A client that has read nothing for a third of its session timeout is
// served again, so that the queue of a client that never reads grows to the limit and the
// connection is closed.
func (c *conn) awaitReader() {
	if c.out.waiting() <= c.mayWait() {
		return
	}
	c.s.mu.Lock()
	patience := cmp.Or(c.timeout, handshakeTime) / 3
	c.s.mu.Unlock()
	c.out.kick()
	select {
	case <-c.out.room: // a signal of an earlier write, which is no progress
	default:
	}
	enough := time.NewTimer(patience)
	defer enough.Stop()
	for progress := false; c.out.waiting() > c.mayWait(); {
		select {
		case <-c.out.room:
			progress = true
		case <-enough.C:
			if !progress {
				return
			}
			progress = false
			c.touchHeldBack()
			enough.Reset(patience)
		case <-c.done:
			return
		}
	}
}

// touchHeldBack touches the session of a client that reads, because its held-back requests do not
// touch it.
func (c *conn) touchHeldBack() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	switch {
	case c.sess == nil || c.closed || c.hung || c.hole.Load() || c.ep.thaw != nil:
	case c.sess.local:
		c.heard = time.Now()
	default:
		_, _ = c.arrive(time.Now())
	}
}

// mayWait returns the number of queued bytes above which the server holds back requests of c. The
// number is smaller when the total of all queues is high, because the server closes connections
// above the total limit.
func (c *conn) mayWait() int {
	limit := math.MaxInt
	if n := c.s.cfg.MaxQueued; n > 0 {
		limit = n / 4
	}
	if n := c.s.cfg.MaxQueuedTotal; n > 0 && c.s.conns.queued.Load() > int64(n/2) {
		limit = min(limit, keptBuffer)
	}
	return limit
}

// ended forgets c, which writes nothing more, and logs the reason if a limit closed c.
func (c *conn) ended() {
	c.s.mu.Lock()
	delete(c.s.conns.closing, c)
	why := c.why
	c.s.mu.Unlock()
	if why != "" {
		c.s.notes.print("closed", "closed the connection of %v: %s", c.nc.RemoteAddr(), why)
	}
}
