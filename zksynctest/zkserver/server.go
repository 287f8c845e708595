package zkserver

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/journal"
	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// Server is an embedded ZooKeeper server. Its methods may be called from any goroutine.
type Server struct {
	cfg        Config
	notes      logger
	unknown    map[OpCode]bool
	allowed4LW map[string]bool
	base       time.Time // origin of the server's clock; expiry buckets are multiples of the tick after base

	// wg counts the goroutines and the timers of the server. It is incremented only under mu, and
	// never after Close has set closed: nothing starts while Close waits for wg, or later.
	wg sync.WaitGroup

	// mu guards the next fields, and the fields of other types that name mu. A goroutine holds mu
	// for one request at a time, and never while it waits.
	mu       sync.Mutex
	closed   bool
	data     tree.Store
	scratch  []byte
	journal  *journal.Journal // nil if there is no data file
	agenda   agenda
	sessions sessionTable
	conns    connTable
	en       *ensemble
	faults   faultTable
}

// agenda holds the next due actions of the server. Times are in milliseconds since base.
type agenda struct {
	due       int64 // time of the timer; 0 if no timer is set
	timer     *timer
	reapDue   int64 // time of the next reaping; 0 if there is nothing to reap
	notBefore int64 // after a thaw, the earliest time at which silence closes a connection
}

// New starts a server with an empty tree. [Server.Dial] works at once, and [Server.Listen] and
// [Server.Serve] add addresses. An invalid Config returns an error that names the field.
func New(cfg Config) (*Server, error) { return NewEnsemble(cfg, 1) }

// maxEndpoints is the maximum number of servers: a session id begins with a byte for the number of
// its server, and an owner that begins with 255 is the TTL of a znode.
const maxEndpoints = 254

// NewEnsemble starts a server with n endpoints, which behave like an ensemble of n servers: see
// [Server.Endpoint]. An odd number is best, as in a real ensemble. NewEnsemble with n = 1 is [New]:
// a standalone server, without quorum and epochs.
func NewEnsemble(cfg Config, n int) (*Server, error) {
	if n < 1 || n > maxEndpoints {
		return nil, fmt.Errorf("zkserver: an ensemble of %d servers: there must be at least 1, and at most %d", n, maxEndpoints)
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	words, err := cfg.whitelist()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	s := &Server{
		cfg:        cfg,
		unknown:    map[OpCode]bool{},
		allowed4LW: words,
		base:       now,
		data: tree.Store{Tree: tree.NewTree(), Rules: tree.Rules{
			TTL: cfg.ExtendedTypes, SASL: cfg.SASLUsers != nil, Quota: cfg.EnforceQuota, Steps: cfg.DataFile != "", NeverUsed: cfg.NeverUsedTTL,
		}},
		sessions: sessionTable{byID: map[int64]*session{}, secret: newPassword(), swap: map[int64]bool{}},
		conns:    connTable{open: map[*conn]struct{}{}, closing: map[*conn]struct{}{}, partitioned: map[int64]bool{}, holes: map[*conn]int64{}},
		faults:   faultTable{ops: opLog{kept: cfg.OpsKept, most: cfg.OpsBytes}},
	}
	s.faults.mu = &s.mu
	s.notes.logf = cfg.Logf
	s.en = newEnsemble(s)
	for _, op := range cfg.Without {
		s.unknown[op] = true
	}
	for range n {
		s.en.addEndpoint(now)
	}
	if cfg.DataFile == "" {
		s.en.lead(s.en.candidate())
		return s, nil
	}
	st, j, err := journal.Open(cfg.files, cfg.DataFile, cfg.DataSync, func(covered func()) []byte {
		s.mu.Lock()
		defer s.mu.Unlock()
		covered()
		return s.state().AppendTo(nil)
	}, func(format string, args ...any) { s.notes.print("data", format, args...) })
	if err != nil {
		return nil, err
	}
	s.journal = j
	if st != nil {
		s.install(st)
	}
	s.mu.Lock()
	s.en.lead(s.en.candidate())
	s.removeOrphans()
	s.mu.Unlock()
	if err := s.persist(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the server: it closes its listeners and connections, and returns when all its
// goroutines have ended. Close may be called again. A function that was passed to [Call] must not
// call Close. Close returns the error of the data file.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.en.announce()
	s.agenda.timer.stop()
	s.agenda.timer, s.agenda.due = nil, 0
	s.en.close()
	var listeners []*listener
	var conns []*conn
	for _, e := range s.en.endpoints {
		e.unfreeze()
		for _, l := range e.listeners {
			l.end()
		}
		listeners = append(listeners, e.listeners...)
		e.listeners = nil
		conns = append(conns, s.hangUpOn(e)...)
	}
	for c := range s.conns.holes {
		conns = append(conns, c)
		c.release()
	}
	s.mu.Unlock()

	for _, l := range listeners {
		l.close()
	}
	closeAll(conns)
	s.wg.Wait()
	return s.journal.Close()
}

// hangUpOn ends all connections to e in a defined order, and returns them so that the caller can
// close their sockets at once, with the connections to e that still write queued frames.
func (s *Server) hangUpOn(e *Endpoint) []*conn {
	for _, c := range s.conns.on(e) {
		c.hangUp()
	}
	conns := slices.DeleteFunc(sorted(maps.Keys(s.conns.closing)), func(c *conn) bool { return c.ep != e || c.hole.Load() })
	for _, c := range conns {
		delete(s.conns.closing, c)
	}
	return conns
}

// timer is a time.AfterFunc whose function Close waits for.
type timer struct {
	t *time.Timer
	s *Server
}

// afterFunc calls f after d in a goroutine of its own. The caller holds mu. On a closed server
// afterFunc starts no timer and returns nil, so that a fault that a test injects while Close runs,
// or later, leaves no timer.
func (s *Server) afterFunc(d time.Duration, f func()) *timer {
	if s.closed {
		return nil
	}
	s.wg.Add(1)
	return &timer{s: s, t: time.AfterFunc(d, func() {
		defer s.wg.Done()
		f()
	})}
}

func (t *timer) stop() {
	if t != nil && t.t.Stop() {
		t.s.wg.Done()
	}
}

// elapsed returns the server's clock in whole milliseconds.
func (s *Server) elapsed(now time.Time) int64 { return now.Sub(s.base).Milliseconds() }

// remoteIP returns the IP of a peer, as the scheme ip and MaxClientConns use it.
func remoteIP(nc net.Conn) string {
	addr := nc.RemoteAddr()
	if addr == nil {
		return ""
	}
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	return host
}
