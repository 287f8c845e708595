// Package proxy relays connections over links that a test can break: a link passes
// bytes, swallows them, delays them, or drops its connections. A link listens on a
// loopback port, or is dialed in memory.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	dialTimeout = 5 * time.Second // for a connect to a target, which is always on this machine
	redialEvery = 10 * time.Millisecond
)

// ErrClosed is the error of a change of a closed link.
var ErrClosed = errors.New("proxy: link closed")

// A Rewriter reads the opening bytes of a connection from the side that dialed, and
// returns the bytes that the target shall read in their place. The bytes that the
// Rewriter left unread follow unchanged.
type Rewriter func(r io.Reader) ([]byte, error)

// A Dialer opens a connection to a target, as the DialContext of a net.Dialer does.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// A Link relays connections to a target: from a loopback port that the link listens on,
// or from Dial. Its methods may be called from any goroutine.
type Link struct {
	listener net.Listener // nil for a link of New
	dialer   Dialer       // nil for a link of Listen
	rewrite  Rewriter
	patience time.Duration
	wg       sync.WaitGroup
	delay    delay
	up, down atomic.Pointer[time.Time] // when bytes last passed to the target, and from it

	mu     sync.Mutex
	target string
	cut    bool
	closed bool
	conns  map[*conn]struct{}
}

// An Option changes a new link.
type Option func(*Link)

// WithRewriter has fn rewrite the beginning of every connection.
func WithRewriter(fn Rewriter) Option {
	return func(l *Link) { l.rewrite = fn }
}

// WithPatience keeps trying a target that refuses connections for up to d. A
// link accepts before it knows whether its target does; dialers that cope with
// a target that is not there yet by dialing again need this time.
func WithPatience(d time.Duration) Option {
	return func(l *Link) { l.patience = d }
}

// Listen opens a link on a free port of 127.0.0.1 that relays to target, a
// loopback "host:port". The target may be empty until SetTarget names it:
// connections are reset for as long as there is none.
func Listen(target string, opts ...Option) (*Link, error) {
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	l := &Link{listener: listener, target: target, conns: make(map[*conn]struct{})}
	for _, opt := range opts {
		opt(l)
	}
	l.wg.Go(l.accept)
	return l, nil
}

// New returns a link without a listener: Dial connects to the targets of dialer.
func New(dialer Dialer) *Link {
	return &Link{dialer: dialer, conns: make(map[*conn]struct{})}
}

// Dial connects to a target by way of a link of New. The near side is in memory. While
// the link is cut, the connection leads nowhere.
func (l *Link) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	cut := l.cut
	l.mu.Unlock()
	var server net.Conn
	if !cut {
		var err error
		if server, err = l.dialer(ctx, network, address); err != nil {
			return nil, err
		}
	}
	near, far := net.Pipe()
	if !l.serve(far, server) {
		return nil, ErrClosed
	}
	return near, nil
}

// checkTarget keeps a typing error from sending test traffic off the machine.
func checkTarget(target string) error {
	if target == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(target)
	if err != nil {
		return fmt.Errorf("proxy: target: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("proxy: target %s is not a loopback address", target)
	}
	return nil
}

// Addr returns the address that the link listens on.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// SetTarget sends connections accepted from now on to another target.
func (l *Link) SetTarget(target string) error {
	if err := checkTarget(target); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	l.target = target
	return nil
}

// Cut swallows every byte, both ways, that the link reads from now on. Open
// connections stay open, also when one of their ends goes away, and new ones are
// accepted and lead nowhere, as behind a broken cable.
func (l *Link) Cut() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	l.cut = true
	for c := range l.conns {
		c.hole()
	}
	return nil
}

// Heal ends a Cut. The connections that lived through it have lost bytes, and
// are reset; new ones work. On a link that was not cut it does nothing.
func (l *Link) Heal() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	l.cut = false
	var holed []*conn
	for c := range l.conns {
		if c.holed.Load() {
			holed = append(holed, c)
		}
	}
	l.mu.Unlock()
	reset(holed)
	return nil
}

// Reset resets the connections of the moment, and returns when they are gone.
// New ones work, unless the link is cut.
func (l *Link) Reset() error {
	conns, err := l.open()
	reset(conns)
	return err
}

// ResetDialers resets the ends of the open connections on the side that dialed.
// The other ends are reset too, unless the link is cut: across a cut link they
// do not learn of it.
func (l *Link) ResetDialers() error { return l.resetEnds(true) }

// ResetTargets does the same as ResetDialers to the ends at the target.
func (l *Link) ResetTargets() error { return l.resetEnds(false) }

func (l *Link) resetEnds(dialed bool) error {
	conns, err := l.open()
	for _, c := range conns {
		c.resetEnd(dialed)
	}
	return err
}

// open lists the open connections of a link that is not closed.
func (l *Link) open() ([]*conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	return l.snapshot(), nil
}

// Passed returns when the link last passed on bytes to its target, and from its
// target: the zero time if it has not passed any.
func (l *Link) Passed() (up, down time.Time) {
	if at := l.up.Load(); at != nil {
		up = *at
	}
	if at := l.down.Load(); at != nil {
		down = *at
	}
	return up, down
}

// SetDelay delays each byte by d, in each direction, so that a round trip takes 2d
// longer. Zero ends the delay. The new delay also applies to the bytes that wait: bytes
// keep their order, so a later byte could not pass them.
func (l *Link) SetDelay(d time.Duration) { l.delay.set(max(d, 0)) }

// Conns returns how many connections the link holds open.
func (l *Link) Conns() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// Close stops listening, resets all connections, and waits for the goroutines.
func (l *Link) Close() error {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	conns := l.snapshot()
	l.mu.Unlock()
	var err error
	if first && l.listener != nil {
		err = l.listener.Close()
	}
	reset(conns)
	l.wg.Wait()
	return err
}

// snapshot lists the open connections; the caller holds mu.
func (l *Link) snapshot() []*conn {
	conns := make([]*conn, 0, len(l.conns))
	for c := range l.conns {
		conns = append(conns, c)
	}
	return conns
}

// reset aborts all first and then waits for all, so that none outlives another.
func reset(conns []*conn) {
	for _, c := range conns {
		c.abort()
	}
	for _, c := range conns {
		<-c.gone
	}
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of file descriptors, as a rule: they come back. Yield to the
			// goroutine that will free one, but look at the listener again soon.
			time.Sleep(10 * time.Millisecond)
			continue
		}
		l.serve(client, nil)
	}
}

// serve relays a connection, to the server if there is a connection with it already. It
// reports false if the link is closed.
func (l *Link) serve(client, server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := newConn(l, client)
	c.server = server
	if l.closed {
		c.abort()
		return false
	}
	if l.cut {
		c.hole()
	}
	l.conns[c] = struct{}{}
	target := l.target
	l.wg.Go(func() {
		c.run(target)
		l.mu.Lock()
		delete(l.conns, c)
		l.mu.Unlock()
		close(c.gone)
	})
	return true
}

// dial connects to the target, or fails once ctx or the time is over.
func (l *Link) dial(ctx context.Context, target string) (net.Conn, error) {
	if target == "" {
		return nil, errors.New("proxy: no target")
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	for end := time.Now().Add(l.patience); ; {
		nc, err := dialer.DialContext(ctx, "tcp", target)
		if err == nil || ctx.Err() != nil || !time.Now().Before(end) {
			return nc, err
		}
		select {
		case <-time.After(redialEvery):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
