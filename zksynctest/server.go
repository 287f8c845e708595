package zksynctest

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// These aliases of zkserver's types describe faults and requests. Package zkserver
// has their constants, too.
type (
	Fault     = zkserver.Fault
	Injection = zkserver.Injection
	Op        = zkserver.Op
	OpCode    = zkserver.OpCode
	SubOp     = zkserver.SubOp
	Moment    = zkserver.Moment
	Action    = zkserver.Action
)

// The moments at which a Fault strikes.
const (
	BeforeCommit = zkserver.BeforeCommit
	AfterCommit  = zkserver.AfterCommit
	BeforeReply  = zkserver.BeforeReply
	OnWatch      = zkserver.OnWatch
)

// The actions of a Fault. Throttle answers a request that the server throttles;
// CutAfterForward cuts the client's server off from its leader right after it has
// passed a request on.
var (
	Drop            = zkserver.Drop
	Disconnect      = zkserver.Disconnect
	Throttle        = zkserver.Throttle
	CutAfterForward = zkserver.CutAfterForward
)

// Delay is a fault that holds a connection up for d.
func Delay(d time.Duration) Action { return zkserver.Delay(d) }

// Error is a fault that answers with a code of the protocol, as -110.
func Error(code int32) Action { return zkserver.Error(code) }

// Hold is a fault that holds a connection up until a channel is closed.
func Hold(until <-chan struct{}) Action { return zkserver.Hold(until) }

// Call is a fault that runs f and then goes on.
func Call(f func()) Action { return zkserver.Call(f) }

// An Option changes a default of Start.
type Option func(*zkserver.Config)

// WithTick sets the server's unit of time: sessions expire at multiples of it, and
// their timeout is at least two of it and at most twenty. The default is 2 s, as in
// ZooKeeper's sample configuration.
func WithTick(d time.Duration) Option {
	return func(c *zkserver.Config) { c.TickTime = d }
}

// WithConfig sets everything that the server lets configure.
func WithConfig(cfg zkserver.Config) Option {
	return func(c *zkserver.Config) { *c = cfg }
}

// Server is an embedded ZooKeeper server that ends with the test. The methods of
// zkserver.Server inject faults, from ExpireSession to Inject, and show the state of
// the server, from Ops to Dump.
//
// It runs inside a bubble of testing/synctest, where hours pass in
// microseconds.
type Server struct {
	*zkserver.Server
	tb testing.TB

	mu    sync.Mutex
	addrs []string // of the endpoints, over TCP; "" before the first call of Addr
}

// Start starts a server in this process. It opens no socket: Connect and Dial
// reach it in memory, and Addr makes it listen. It is closed when the test ends,
// and if the test has failed, its tree and what faults did are logged before.
func Start(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	return start(tb, 1, zkserver.Config{}, opts)
}

func start(tb testing.TB, n int, cfg zkserver.Config, opts []Option) *Server {
	tb.Helper()
	for _, opt := range opts {
		opt(&cfg)
	}
	srv, err := zkserver.NewEnsemble(cfg, n)
	if err != nil {
		tb.Fatalf("zksynctest: start a server: %v", err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			if struck := struckOps(srv.Ops()); struck != "" {
				tb.Logf("what faults were injected into:\n%s", struck)
			}
			tb.Logf("the server's tree:\n%s", srv.Dump())
		}
		if err := srv.Close(); err != nil {
			tb.Errorf("zksynctest: close the server: %v", err)
		}
	})
	return &Server{Server: srv, tb: tb, addrs: make([]string, n)}
}

// struckShown is the number of operations struck by faults that a failed test shows,
// the latest ones.
const struckShown = 100

func struckOps(ops []Op) string {
	ops = slices.DeleteFunc(ops, func(op Op) bool { return op.Fault == "" })
	var b strings.Builder
	for _, op := range ops[max(0, len(ops)-struckShown):] {
		b.WriteString(op.String() + "\n")
	}
	return b.String()
}

// connectTimeout bounds Connect: nothing slow lies between it and the server,
// but a test may have broken the server on purpose.
const connectTimeout = time.Minute

// Connect returns a Manager with a session on the server, in memory. It is
// closed when the test ends, before the server is. Without a session within a
// minute the test fails at once, so call it from the goroutine of the test.
func (s *Server) Connect(tb testing.TB, opts ...session.Option) *session.Manager {
	tb.Helper()
	return connect(tb, InMemory, append([]session.Option{session.WithDialer(s.Dial)}, opts...))
}

// InMemory is the address by which a server is reached with its own Dial. Any
// other does as well; a name would be looked up by some clients.
const InMemory = "127.0.0.1:2181"

func connect(tb testing.TB, servers string, opts []session.Option) *session.Manager {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), connectTimeout)
	defer cancel()
	m, err := session.Connect(ctx, servers, opts...)
	if err != nil {
		tb.Fatalf("zksynctest: connect to %s: %v", servers, err)
	}
	tb.Cleanup(func() {
		if err := m.Close(); err != nil {
			tb.Errorf("zksynctest: close a session: %v", err)
		}
	})
	return m
}

// Addr returns a TCP address on the loopback interface at which any client, in
// any language, reaches the server. It listens from the first call on. Inside a
// bubble it fails the test: a goroutine that waits for a connection from outside
// would stop the bubble's clock.
func (s *Server) Addr() string {
	s.tb.Helper()
	return s.tcpAddr(1)
}

// tcpAddr has endpoint i listen, if it does not yet.
func (s *Server) tcpAddr(i int) string {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if addr := s.addrs[i-1]; addr != "" {
		return addr
	}
	if inBubble() {
		s.tb.Fatalf("zksynctest: Addr inside a synctest bubble would stop its clock; use Connect or Dial, which work in memory")
	}
	addr, err := s.Endpoint(i).Listen("127.0.0.1:0")
	if err != nil {
		s.tb.Fatalf("zksynctest: listen: %v", err)
	}
	s.addrs[i-1] = addr.String()
	return s.addrs[i-1]
}

// inBubble looks at the header of its own stack trace, since testing/synctest
// has no question for it.
func inBubble() bool {
	buf := make([]byte, 128)
	buf = buf[:runtime.Stack(buf, false)]
	header, _, _ := bytes.Cut(buf, []byte("\n"))
	return bytes.Contains(header, []byte("synctest bubble"))
}
