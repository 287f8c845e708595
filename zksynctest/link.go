package zksynctest

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/internal/proxy"
)

// A Link is the network between one client and its servers. A Link can be cut and healed, for all
// sessions and connections of the client; Server.Partition cuts off one session instead.
//
//	link := srv.NewLink(t)
//	m := link.Connect(t)
//	...
//	link.Cut()
//
// A Link works inside a bubble of testing/synctest, and with all kinds of servers. Its methods may
// be called from any goroutine.
type Link struct {
	proxy   *proxy.Link
	servers string
	server  *Server // nil for a Link of the function NewLink
	bubble  string  // in which it was made; empty outside
}

// NewLink returns a Link to the servers that dial reaches, such as the Dial of a zkserver.Server or
// of a net.Dialer. Use NewLink in programs and with real servers, whose clients use Link.Dial:
//
//	link := zksynctest.NewLink(new(net.Dialer).DialContext)
//	defer link.Close()
//	m, err := session.Connect(ctx, servers, session.WithDialer(link.Dial))
func NewLink(dial session.DialFunc) *Link {
	return &Link{proxy: proxy.New(proxy.Dialer(dial)), servers: InMemory, bubble: bubble()}
}

// NewLink returns a Link to the server, or to all endpoints of the ensemble. It is
// closed when the test ends.
func (s *Server) NewLink(tb testing.TB) *Link {
	tb.Helper()
	s.check(tb)
	l := NewLink(s.Dial)
	var servers []string
	for i := range s.Size() {
		servers = append(servers, s.Endpoint(i+1).Addr())
	}
	l.server, l.servers = s, strings.Join(servers, ",")
	atEnd(tb, func() { _ = l.Close() }) // without a listener there is no error
	return l
}

// Connect returns a Manager with a session over the link. It is closed when the test ends. Without
// a session within a minute the test fails at once, so call Connect from the goroutine of the test.
func (l *Link) Connect(tb testing.TB, opts ...session.Option) *session.Manager {
	tb.Helper()
	switch {
	case l.server != nil:
		l.server.check(tb)
	case bubble() != l.bubble:
		tb.Fatal(errLinkOtherBubble)
	default:
		checkTest(tb)
	}
	return connect(tb, l.servers, append([]session.Option{session.WithDialer(l.Dial)}, opts...))
}

// Dial opens a connection to a server over the link, for session.WithDialer.
func (l *Link) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return l.proxy.Dial(ctx, network, address)
}

// Cut drops every byte, in both directions, from now on, like a firewall that drops packets.
// Connections stay open, even when one of their ends is closed. The client can open new
// connections, but they get no answer.
func (l *Link) Cut() { _ = l.proxy.Cut() }

// Heal ends a Cut. The connections that were open during the cut have lost bytes and are closed;
// new connections work.
func (l *Link) Heal() { _ = l.proxy.Heal() }

// Reset closes the current connections. New connections work, unless the link is cut.
func (l *Link) Reset() { _ = l.proxy.Reset() }

// Delay delays each byte by d, in each direction: a round trip takes 2d longer. Zero ends the delay.
// The new delay also applies to bytes that are under way.
func (l *Link) Delay(d time.Duration) { l.proxy.SetDelay(d) }

// Close closes all connections and returns when all goroutines of the link have ended. Later calls
// of Dial fail. Close may be called more than once.
func (l *Link) Close() error { return l.proxy.Close() }
