package session

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"reflect"
	"runtime"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// errRefused is the answer of a session's dialer after the end of the session. It stays
// final, because go-zookeeper would otherwise start another session on the same Conn, and
// run the queued requests of this session under it.
var errRefused = errors.New("session: this session has ended")

// zkBuffer is the size of go-zookeeper's two buffers. go-zookeeper sees only the
// handshake, pings and the answer to closeSession, which all take less than a hundred
// bytes. Its default is 1.5 MB for each Conn and for each connection.
const zkBuffer = 4 << 10

// A link keeps a session connected through its own zk.Conn. It is the HostProvider and
// the dialer of the Conn.
type link struct {
	s       *Session
	ctx     context.Context // ends when no further connection may be made
	cancel  context.CancelFunc
	zk      *zk.Conn
	events  <-chan zk.Event
	parked  chan struct{} // closed when zk asks for a server after ctx has ended
	park    sync.Once
	closing chan struct{}  // closed when shutdown calls zk.Close
	closed  chan struct{}  // closed when zk.Close has returned
	wg      sync.WaitGroup // the writers of the connections

	attempts attempts

	mu   sync.Mutex
	conn *wire.Conn // the newest
}

func (l *link) open() error {
	// Not under the ctx of the Manager: while Close waits for requests in flight, the
	// session may need another connection.
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.parked, l.closing, l.closed = make(chan struct{}), make(chan struct{}), make(chan struct{})
	timeout := max(l.s.m.cfg.timeout, time.Millisecond)
	var err error
	l.zk, l.events, err = zk.Connect(l.s.m.servers.all, timeout,
		zk.WithDialer(l.dial), zk.WithHostProvider(l),
		zk.WithMaxBufferSize(zkBuffer), zk.WithMaxConnBufferSize(zkBuffer),
		zk.WithLogger(zkLog{l.s.m.cfg.log, &l.s.m.zkLines}), zk.WithLogInfo(false))
	return err
}

// Init, Len, Next and Connected implement zk.HostProvider.
func (l *link) Init([]string) error { return nil }
func (l *link) Len() int            { return len(l.s.m.servers.all) }
func (l *link) Connected()          {}

// Next returns the server to dial.
func (l *link) Next() (server string, retryStart bool) {
	if l.ctx.Err() == nil {
		return l.s.m.servers.next(), false
	}
	// The session has ended. At the end of the list of servers, go-zookeeper answers the
	// queued requests, checks whether it was closed, and stops. So zk.Close must have
	// queued its request by then.
	l.park.Do(func() { close(l.parked) })
	<-l.closing
	l.awaitCloseRequest()
	return "", true
}

// awaitCloseRequest waits until zk.Close has queued its request, or has returned.
func (l *link) awaitCloseRequest() {
	// zk.Close first stops go-zookeeper's loop and then queues the request. If the loop
	// stops first, the request stays unanswered, and zk.Close waits a second for the
	// answer. No call of go-zookeeper returns the length of its queue, hence the
	// reflection.
	queue := reflect.ValueOf(l.zk).Elem().FieldByName("sendChan")
	for queue.IsValid() && queue.Kind() == reflect.Chan && queue.Len() == 0 {
		select {
		case <-l.closed:
			return
		default:
			runtime.Gosched() // zk.Close needs only to be scheduled
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
	// A dead server must not cost a hold. The Deadline may be only 0.28 of the timeout
	// ahead, and the next server needs time as well.
	if l.s.leases.proving() {
		return min(t/6, maxDial)
	}
	// A session that holds nothing lives for the whole timeout: time for three
	// attempts.
	return min(t/3, maxDial)
}

func (l *link) dial(network, server string, _ time.Duration) (net.Conn, error) {
	if err := l.pause(); err != nil {
		return nil, err
	}
	m := l.s.m
	start := time.Now()
	bound := l.bound()
	ctx, cancel := context.WithDeadline(l.ctx, start.Add(bound))
	defer cancel()
	conn, raw, err := dialServer(ctx, &m.cfg, network, server)
	if err != nil {
		l.failed(server, err)
		return nil, err
	}
	sasl, err := startSASL(ctx, m.cfg.sasl, server)
	if err != nil {
		raw.Close()
		l.failed(server, err)
		return nil, err
	}
	// From now on a silent server is a server that does not answer the handshake.
	m.servers.asking(server)
	w := newConnection(l.s, sasl, wire.Config{Conn: conn, Raw: raw, Number: m.connections.Add(1), Server: server})
	l.mu.Lock()
	defer l.mu.Unlock()
	// stop ends the connection that it finds in l.conn. If stop ran during the dial, it
	// has not seen this one.
	if l.ctx.Err() != nil {
		raw.Close()
		return nil, errRefused
	}
	l.conn = w
	w.Limit(max(time.Until(start.Add(bound)), time.Millisecond), &wire.UnansweredError{Err: hung("the handshake", bound)})
	l.wg.Go(w.Run)
	return w.Stream(), nil
}

// pause waits before an attempt that follows failed attempts.
func (l *link) pause() error {
	// Another server may work, so there is no pause until every server has been tried once.
	// Later pauses grow, with jitter, so that the clients of a server that died do not
	// reconnect all at once.
	rounds := l.attempts.rounds(l.Len())
	if l.ctx.Err() != nil {
		return errRefused
	}
	if rounds == 0 {
		return nil
	}
	limit := maxBackoff
	if l.s.leases.proving() {
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
	l.s.m.serverFailed(server, why)
	// After the end of the session the error shows nothing about the server.
	if l.ctx.Err() == nil {
		l.attempts.broken(l.Len())
	}
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

// shutdown ends the loops of the zk.Conn. It first tries to close the session over the
// connection that is in use, for half of closePatience, and reports whether the server
// has answered that the session is closed. wait must follow.
func (l *link) shutdown() (closed bool) {
	if l.ctx.Err() != nil || l.s.gate.current() == nil {
		// There is no connection to close the session on. zk.Close would wait a second for
		// the answer, except while the Conn asks for a server.
		l.stop()
		<-l.parked
	}
	close(l.closing)
	go func() {
		defer close(l.closed)
		l.zk.Close()
	}()
	limit := time.NewTimer(closePatience / 2)
	defer limit.Stop()
	for waits := true; waits; {
		select {
		case <-l.closed:
			waits = false
		// If the connection ends before zk.Close has queued its request, the loops end
		// without an answer, and zk.Close returns a second later.
		case _, waits = <-l.events:
		case <-limit.C:
			waits = false
		}
	}
	// The answer may never come. The end of the connection ends the loops.
	l.stop()
	// go-zookeeper closes the channel when its loops have ended.
	for range l.events {
	}
	// stop has refused later connections, so conn stays as it is.
	return l.conn != nil && l.conn.SessionClosed()
}

// wait waits until all goroutines of the link have ended.
func (l *link) wait() {
	<-l.closed
	l.wg.Wait()
}

// dialServer opens a connection to one server. raw is the connection below TLS, or conn
// itself.
func dialServer(ctx context.Context, cfg *config, network, server string) (conn, raw net.Conn, err error) {
	raw, err = cfg.dial(ctx, network, server)
	if err != nil {
		return nil, nil, err
	}
	if raw == nil {
		return nil, nil, errors.New("the dialer returned neither a connection nor an error")
	}
	if cfg.tls == nil {
		return raw, raw, nil
	}
	secured := cfg.tls
	if secured.ServerName == "" && !secured.InsecureSkipVerify {
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
