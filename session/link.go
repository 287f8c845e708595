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

// errRefused is what the dialer of a session that is over answers, for good:
// go-zookeeper would start another session on the same Conn, and run under it
// what was meant for this one.
var errRefused = errors.New("session: this session is over")

const shortPerRound = 8 // see broken

// zkBuffer is the size of go-zookeeper's two buffers. go-zookeeper sees only the
// handshake, pings and the answer to closeSession, all of which take less than a
// hundred bytes. Its default is 1.5 MB for each Conn and for each connection.
const zkBuffer = 4 << 10

// A link keeps a session connected through a zk.Conn of its own: it is the
// Conn's HostProvider and dialer.
type link struct {
	s       *Session
	ctx     context.Context // ends when no connection may be made any more
	cancel  context.CancelFunc
	zk      *zk.Conn
	events  <-chan zk.Event
	parked  chan struct{} // closed when zk asks for a server after ctx has ended
	park    sync.Once
	closing chan struct{}  // closed when shutdown calls zk.Close
	closed  chan struct{}  // closed when zk.Close has returned
	wg      sync.WaitGroup // the wires' writers

	mu       sync.Mutex
	conn     *wire.Conn // the newest
	failures int        // attempts in a row that led to nothing
	offline  int        // failures since a connection was put to use; the next session goes on from there
	short    int        // connections in a row that ended soon after they were put to use
	attached time.Time
}

func (l *link) open() error {
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

// Init, Len, Next and Connected make the link a zk.HostProvider.
func (l *link) Init([]string) error { return nil }
func (l *link) Len() int            { return len(l.s.m.servers.all) }
func (l *link) Connected()          {}

// Next returns the server to dial. After the end of the session Next returns when
// zk.Close has queued its request, and reports the end of the list of servers:
// go-zookeeper then answers what is queued, looks whether it was closed, and stops.
func (l *link) Next() (server string, retryStart bool) {
	if l.ctx.Err() == nil {
		return l.s.m.servers.next(), false
	}
	l.park.Do(func() { close(l.parked) })
	<-l.closing
	l.awaitCloseRequest()
	return "", true
}

// awaitCloseRequest waits until zk.Close has queued its request, or has returned.
// zk.Close first stops go-zookeeper's loop and then queues the request. A loop that
// is quicker leaves the request unanswered, and zk.Close waits for its answer for a
// second. No call of go-zookeeper tells the length of its queue.
func (l *link) awaitCloseRequest() {
	queue := reflect.ValueOf(l.zk).Elem().FieldByName("sendChan")
	for queue.IsValid() && queue.Kind() == reflect.Chan && queue.Len() == 0 {
		select {
		case <-l.closed:
			return
		default:
			runtime.Gosched() // zk.Close has only to be scheduled
		}
	}
}

// maxDial bounds a dial with its handshake in sessions with a long timeout.
const maxDial = 30 * time.Second

// bound is how long a dial with its handshake may take.
func (l *link) bound() time.Duration {
	t := l.s.m.cfg.timeout
	if n := l.s.Timeout(); n > 0 {
		t = n
	}
	if l.s.leases.proving() {
		return min(t/6, maxDial)
	}
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
	m.servers.asking(server)
	w := newConnection(l.s, sasl, wire.Config{Conn: conn, Raw: raw, Number: m.connections.Add(1), Server: server})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		raw.Close()
		return nil, errRefused
	}
	l.conn = w
	w.Limit(max(time.Until(start.Add(bound)), time.Millisecond), &wire.UnansweredError{Err: hung("the handshake", bound)})
	l.wg.Go(w.Run)
	return w.Stream(), nil
}

// pause waits before an attempt that follows on failed ones: not before every
// server has been tried once, then for longer each time, with jitter so that
// the clients of a server that died do not come back all at once.
func (l *link) pause() error {
	l.mu.Lock()
	rounds := l.failures / len(l.s.m.servers.all)
	l.mu.Unlock()
	if l.ctx.Err() != nil {
		return errRefused
	}
	if rounds == 0 {
		return nil
	}
	limit := maxBackoff
	if l.s.leases.proving() {
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
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures++
	l.offline++
}

// established is told when a connection has proven to reach the leader.
func (l *link) established() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attached, l.offline = time.Now(), 0
}

// answered is told when a server has answered that the session is over. A server asks
// the leader for that, so the outage has ended, and the next session begins without a
// pause.
func (l *link) answered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.offline = 0
}

// broken is told when a connection has ended.
func (l *link) broken(server string, why error) {
	l.s.m.serverFailed(server, why)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ctx.Err() != nil:
		// The session has ended, which says nothing of the servers.
	case l.attached.IsZero():
		l.failures++
		l.offline++
	case time.Since(l.attached) < maxBackoff:
		// A server that lets us in and hangs up must not be hammered, but one
		// that was restarted must not be waited for either. So the pauses grow to a
		// second only after dozens of such connections.
		l.short++
		l.failures = min(l.failures+1, (2+l.short/shortPerRound)*len(l.s.m.servers.all))
	default:
		l.failures, l.short = 0, 0
	}
	l.attached = time.Time{}
}

// goOn makes a new link go on with the pauses of the link of the session before: while
// no server can be used, the end of a session is no reason to try them all at once.
func (l *link) goOn(before *link) {
	before.mu.Lock()
	defer before.mu.Unlock()
	l.failures, l.offline = before.offline, before.offline
}

// stop makes the link refuse to connect, and ends its connection.
func (l *link) stop() {
	l.cancel()
	l.mu.Lock()
	w := l.conn
	l.mu.Unlock()
	if w != nil {
		w.End(errRefused)
	}
}

// shutdown closes the zk.Conn, which closes the session on the server if there
// is a connection, and waits until nothing of it runs any more.
func (l *link) shutdown() {
	if l.ctx.Err() != nil || !l.s.known.Load() {
		// There is nothing to close on the server. A Conn waits a second for an
		// answer to its closing, unless it is told so while it looks for a server.
		l.stop()
		<-l.parked
	}
	close(l.closing)
	go func() {
		defer close(l.closed)
		l.zk.Close()
	}()
	limit := time.NewTimer(time.Second)
	defer limit.Stop()
	select {
	case <-l.closed:
	case <-limit.C:
	}
	l.stop()
	for range l.events {
	}
	<-l.closed
	l.wg.Wait()
}

// dialServer opens a connection to one server, and the one below TLS.
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
