package session

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// errRefused ends the connections of a session that is over: no further connection is made,
// so no request of this session runs under the next one.
var errRefused = errors.New("session: this session has ended")

// A link keeps a session connected: it makes one connection after the other.
type link struct {
	s       *Session
	closing bool            // the session is over, and each connection only closes it on the server
	ctx     context.Context // ends when no further connection may be made
	cancel  context.CancelFunc
	wg      sync.WaitGroup // for run
	ordered atomic.Bool    // Close has reached the connection: its end is no fault

	attempts attempts

	mu   sync.Mutex
	conn *wire.Conn // the newest
}

func (l *link) open() {
	// Not under the ctx of the Manager: while Close waits for requests in flight, the
	// session may need another connection.
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.wg.Go(l.run)
}

func (l *link) run() {
	for l.pause() == nil {
		if w := l.dial(l.s.m.servers.next()); w != nil {
			w.Run()
		}
	}
}

// maxDial bounds a dial with its handshake in sessions with a long timeout.
const maxDial = 30 * time.Second

// leastFirstTimeout bounds the dials before the servers have granted a timeout from below.
const leastFirstTimeout = 3 * time.Second

// bound returns the time limit of a dial with its handshake.
func (l *link) bound() time.Duration {
	t := l.s.Timeout()
	if t == 0 {
		// The servers raise a timeout that is too short for them, when they have answered.
		t = max(l.s.m.cfg.timeout, leastFirstTimeout)
	}
	if end, ok := l.ctx.Deadline(); ok {
		// A silent server must leave time for another server.
		return min(t/3, maxDial, time.Until(end)/2)
	}
	// A dead server must not cost a hold. The Deadline may be only 0.28 of the timeout
	// ahead, and the next server needs time as well.
	if l.s.leases.proving() {
		return min(t/6, maxDial)
	}
	// A session that holds nothing lives for the whole timeout: time for three
	// attempts.
	return min(t/3, maxDial)
}

// dial returns a connection to the server on which nothing was sent yet, nil if there is none.
func (l *link) dial(server string) *wire.Conn {
	m := l.s.m
	start := time.Now()
	bound := l.bound()
	ctx, cancel := context.WithDeadline(l.ctx, start.Add(bound))
	defer cancel()
	conn, raw, err := dialServer(ctx, &m.cfg, server, &l.s.wg)
	if err != nil {
		l.failed(server, err)
		return nil
	}
	sasl, err := startSASL(ctx, m.cfg.sasl, server)
	if err != nil {
		raw.Close()
		l.failed(server, err)
		return nil
	}
	if !l.closing {
		// From now on a silent server is a server that does not answer the handshake.
		m.servers.asking(server)
	}
	w := newConnection(l, sasl, wire.Config{Conn: conn, Raw: raw, Number: m.connections.Add(1), Server: server})
	l.mu.Lock()
	defer l.mu.Unlock()
	// stop ends the connection that it finds in l.conn. If stop ran during the dial, it
	// has not seen this one.
	if l.ctx.Err() != nil {
		raw.Close()
		return nil
	}
	l.conn = w
	w.Limit(max(time.Until(start.Add(bound)), time.Millisecond), &wire.UnansweredError{Err: hung("the handshake", bound)})
	return w
}

// pause waits before an attempt that follows failed attempts.
func (l *link) pause() error {
	// Another server may work, so there is no pause until every server has been tried once.
	// Later pauses grow, with jitter, so that the clients of a server that died do not
	// reconnect all at once.
	servers := len(l.s.m.servers.all)
	if l.closing {
		servers = 1 // the next session dials, too
	}
	rounds := l.attempts.rounds(servers)
	if l.ctx.Err() != nil {
		return errRefused
	}
	if rounds == 0 {
		return nil
	}
	limit := maxBackoff
	if !l.closing && l.s.leases.proving() {
		// The pause and the next attempt together must leave time for another server
		// before the Deadline.
		limit = min(limit, l.bound()/2)
	}
	if sleep(l.ctx, l.s.m.jitter.spread(backoff(rounds, firstBackoff, limit)), l.ctx) != nil {
		return errRefused
	}
	return nil
}

func (l *link) failed(server string, err error) {
	l.s.m.serverFailed(server, err)
	l.s.m.lines.log(l.s.m.cfg.log, zap.DebugLevel, "no connection", zap.String("server", server), zap.Error(err))
	l.attempts.failed()
}

// broken handles the end of a connection.
func (l *link) broken(server string, why error) {
	if l.closing && l.ctx.Err() != nil {
		return // the session is closed
	}
	l.s.m.serverFailed(server, why)
	// After the end of the session the error shows nothing about the server.
	if l.ctx.Err() == nil {
		l.attempts.broken(len(l.s.m.servers.all))
	}
}

// logEnd logs the end of a connection that was in use.
func (l *link) logEnd(server string, why error) {
	message, fields := "disconnected", []zap.Field{zap.String("server", server), sessionField(l.s.id)}
	if l.ordered.Load() {
		message = "closed" // why is no fault: the server hangs up behind its answer, or stop has ended the connection
	} else {
		fields = append(fields, zap.Error(why))
	}
	l.s.m.lines.log(l.s.m.cfg.log, zap.InfoLevel, message, fields...)
}

// stop makes the link refuse to connect, and ends its connection.
func (l *link) stop() {
	// Before the look at conn: a dial that ends later finds ctx ended.
	l.cancel()
	l.mu.Lock()
	w := l.conn
	l.mu.Unlock()
	if w != nil {
		w.End(errRefused)
	}
}

// shutdown ends the link. It first tries to close the session over the connection that is in
// use, for half of closePatience, and reports whether the server has answered that the session
// is closed.
func (l *link) shutdown() (closed bool) {
	l.ordered.Store(true)
	l.cancel() // the server ends the connection behind its answer, and no other connection must follow
	var c *wire.Call
	if w := l.s.gate.current(); w != nil {
		c = w.Send(&wire.Request{Op: wire.OpCloseSession, Own: true})
		limit := time.NewTimer(closePatience / 2)
		defer limit.Stop()
		select {
		case <-c.Done():
		case <-limit.C:
		}
	}
	l.stop()
	l.wg.Wait()
	// The end of the connection has settled the call.
	return c != nil && c.Err == nil && c.Code == 0
}

// dialServer opens a connection to one server. raw is the connection below TLS, or conn
// itself. closers is for the goroutine that closes raw.
func dialServer(ctx context.Context, cfg *config, server string, closers *sync.WaitGroup) (conn, raw net.Conn, err error) {
	raw, err = cfg.dial(ctx, "tcp", server)
	if err != nil {
		return nil, nil, err
	}
	if raw == nil {
		return nil, nil, errors.New("the dialer returned neither a connection nor an error")
	}
	raw = &promptConn{Conn: raw, closers: closers}
	if cfg.tls == nil {
		return raw, raw, nil
	}
	secured := cfg.tls
	if secured.ServerName == "" { // also with InsecureSkipVerify: as for tls.Dial, the program's VerifyConnection gets the name
		host, _, err := net.SplitHostPort(server)
		if err != nil {
			raw.Close()
			return nil, nil, err
		}
		// The config belongs to the program, and serves the connections to all servers.
		secured = secured.Clone()
		secured.ServerName = host
	}
	secure := tls.Client(raw, secured)
	if err := secure.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, nil, &tlsError{err}
	}
	return secure, raw, nil
}
