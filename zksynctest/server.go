package zksynctest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// These types of zkserver describe faults and requests. Package zkserver also has their constants.
type (
	// A Fault says which requests or watch events it strikes, when, and by which Action. See zkserver.Fault for its fields.
	Fault = zkserver.Fault

	// An Injection is a Fault that was injected into a server. See zkserver.Injection for its methods.
	Injection = zkserver.Injection

	// An Op is a request that the server received, with its result. See zkserver.Op for its fields.
	Op = zkserver.Op

	// An OpCode is the type of a request. See zkserver.OpCode, and the constants of zkserver such as OpCreate.
	OpCode = zkserver.OpCode

	// A SubOp is one operation of a multi. See zkserver.SubOp for its fields.
	SubOp = zkserver.SubOp

	// A Moment is the stage of a request at which a Fault strikes, such as AfterCommit. See zkserver.Moment.
	Moment = zkserver.Moment

	// An Action is the effect of a Fault, such as Drop or Delay. See zkserver.Action.
	Action = zkserver.Action
)

// The moments at which a Fault strikes.
const (
	BeforeCommit = zkserver.BeforeCommit
	AfterCommit  = zkserver.AfterCommit
	BeforeReply  = zkserver.BeforeReply
	OnWatch      = zkserver.OnWatch
)

// The actions of a Fault. Throttle answers a request with a throttling error; CutAfterForward cuts
// the client's server off from its leader directly after the server has forwarded a request.
var (
	Drop            = zkserver.Drop
	Disconnect      = zkserver.Disconnect
	Throttle        = zkserver.Throttle
	CutAfterForward = zkserver.CutAfterForward
)

// Delay returns the action that delays a connection by d.
func Delay(d time.Duration) Action { return zkserver.Delay(d) }

// Error returns the action that answers with a code of the protocol, such as zkserver.ErrThrottledOp or -110.
func Error(code zkserver.Code) Action { return zkserver.Error(code) }

// Hold returns the action that stops a connection until a channel is closed.
func Hold(until <-chan struct{}) Action { return zkserver.Hold(until) }

// Call returns the action that calls f and continues when f returns.
func Call(f func()) Action { return zkserver.Call(f) }

// An Option changes a default of Start.
type Option func(*zkserver.Config)

// WithTick sets the server's unit of time: sessions expire at multiples of the tick, and their
// timeout is between two and twenty ticks. The default is 2 s, as in ZooKeeper's sample
// configuration.
func WithTick(d time.Duration) Option {
	return func(c *zkserver.Config) { c.TickTime = d }
}

// WithConfig sets the whole configuration of the server.
func WithConfig(cfg zkserver.Config) Option {
	return func(c *zkserver.Config) { *c = cfg }
}

// Server is an embedded ZooKeeper server that ends with the test. The methods of zkserver.Server
// inject faults, such as ExpireSession and Inject, and show the state of the server, such as Ops
// and Dump.
//
// A Server runs inside a bubble of testing/synctest. An idle server costs nothing while the bubble's time passes. A
// connected Manager sends heartbeats, so that a day of the bubble takes some seconds.
type Server struct {
	*zkserver.Server
	tb     testing.TB
	bubble string      // in which it was started; empty outside
	ended  atomic.Bool // the test, which takes no more messages

	mu    sync.Mutex
	addrs []string // of the endpoints, over TCP; "" before the first call of Addr
}

// Start starts a server in this process. Start opens no socket: Connect and Dial use memory, and
// the first call of Addr opens a listener. The server is closed when the test ends. A failed test
// logs the first 300 znodes of the server's tree and the operations that faults struck.
//
// Call Start inside the bubble that uses the server, with the t of the bubble: the server has timers,
// and a bubble cannot use the timers of another bubble, or of the time outside.
func Start(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	return start(tb, 1, zkserver.Config{}, opts)
}

func start(tb testing.TB, n int, cfg zkserver.Config, opts []Option) *Server {
	tb.Helper()
	checkTest(tb)
	for i, opt := range opts {
		if opt == nil {
			tb.Fatalf("zksynctest: start a server: option %d is nil; leave it out", i+1)
		}
		opt(&cfg)
	}
	srv, err := zkserver.NewEnsemble(cfg, n)
	if err != nil {
		tb.Fatalf("zksynctest: start a server: %v", err)
	}
	s := &Server{Server: srv, tb: tb, bubble: bubble(), addrs: make([]string, n)}
	atEnd(tb, func() {
		s.ended.Store(true)
		if tb.Failed() {
			if struck := struckOps(srv.Ops()); struck != "" {
				tb.Logf("what faults were injected into:\n%s", struck)
			}
			tb.Logf("the server's tree:\n%s", firstLines(srv.Dump()))
		}
		if err := srv.Close(); err != nil {
			tb.Errorf("zksynctest: close the server: %v", err)
		}
	})
	return s
}

// struckShown is the number of the latest struck operations that a failed test logs.
const struckShown = 100

func struckOps(ops []Op) string {
	ops = slices.DeleteFunc(ops, func(op Op) bool { return op.Fault == "" })
	var b strings.Builder
	for _, op := range ops[max(0, len(ops)-struckShown):] {
		b.WriteString(op.String() + "\n")
	}
	return b.String()
}

// treeShown is the number of znodes that a failed test logs.
const treeShown = 300

// firstLines returns the first treeShown lines of a Dump, and the number of the lines that follow.
func firstLines(dump string) string {
	rest := dump
	for range treeShown {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	if rest == "" {
		return dump
	}
	return fmt.Sprintf("%s... and %d more znodes, which Dump shows", strings.TrimSuffix(dump, rest), strings.Count(rest, "\n"))
}

// connectTimeout bounds Connect: the connection is in memory, but a test may have broken the server
// on purpose.
const connectTimeout = time.Minute

// Connect returns a Manager with a session on the server, in memory. The Manager is closed when the
// test ends, before the server. Without a session within a minute the test fails at once, so call
// Connect from the goroutine of the test.
func (s *Server) Connect(tb testing.TB, opts ...session.Option) *session.Manager {
	tb.Helper()
	s.check(tb)
	return connect(tb, InMemory, append([]session.Option{session.WithDialer(s.Dial)}, opts...))
}

// Dial opens a connection to the server, in memory, for session.WithDialer. It fails outside the bubble of Start.
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if bubble() != s.bubble {
		return nil, errOtherBubble
	}
	return s.Server.Dial(ctx, network, address)
}

// check fails the test if tb cannot use the server: outside the bubble of Start, with the test outside the bubble, and after Close.
func (s *Server) check(tb testing.TB) {
	tb.Helper()
	if bubble() != s.bubble {
		tb.Fatal(errOtherBubble)
	}
	checkTest(tb)
	if s.closed() {
		tb.Fatal("zksynctest: the server was closed; start another server by Start, or use Stop and Start of this server instead of Close")
	}
}

// closed reports whether the server was closed. WaitLeader for a leader outside the ensemble, with a ctx that has ended, fails
// by ErrNotServing on a closed server, and by ctx on any other.
func (s *Server) closed() bool {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	all := make([]int, s.Size())
	for i := range all {
		all[i] = i + 1
	}
	_, err := s.Server.WaitLeader(ctx, all...)
	return errors.Is(err, zkserver.ErrNotServing)
}

// InMemory is an address for a server's own Dial. Dial accepts any address, but some clients would
// look up a name.
const InMemory = "127.0.0.1:2181"

func connect(tb testing.TB, servers string, opts []session.Option) *session.Manager {
	tb.Helper()
	// The context of the test has ended in a function of Cleanup.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), connectTimeout)
	defer cancel()
	m, err := session.Connect(ctx, servers, opts...)
	if err != nil {
		tb.Fatalf("zksynctest: connect to %s: %v", servers, err)
	}
	atEnd(tb, func() {
		if err := m.Close(); err != nil {
			tb.Errorf("zksynctest: close a session: %v", err)
		}
	})
	return m
}

// Addr returns a TCP address on the loopback interface for any client in any language. The first
// call opens the listener. Inside a bubble Addr fails the test: a goroutine that waits for a
// connection from outside would stop the bubble's clock. After the test the first call of Addr returns "".
func (s *Server) Addr() string {
	s.tb.Helper()
	return s.tcpAddr(1)
}

// tcpAddr makes endpoint i listen, if it does not yet, and returns the address.
func (s *Server) tcpAddr(i int) string {
	s.tb.Helper()
	endpoint := s.Endpoint(i) // or panics for an unknown number
	s.mu.Lock()
	defer s.mu.Unlock()
	if addr := s.addrs[i-1]; addr != "" {
		return addr
	}
	if s.ended.Load() {
		return ""
	}
	if bubble() != "" {
		s.tb.Fatalf("zksynctest: Addr inside a synctest bubble would stop its clock; use Connect or Dial, which work in memory")
	}
	addr, err := endpoint.Listen("127.0.0.1:0")
	if err != nil {
		s.tb.Fatalf("zksynctest: listen: %v", err)
	}
	s.addrs[i-1] = addr.String()
	return s.addrs[i-1]
}
