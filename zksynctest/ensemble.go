package zksynctest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// usualElection is about the time that three idle servers on one machine need.
const usualElection = 200 * time.Millisecond

// WithElectionTime sets how long an embedded ensemble is without a leader after it
// has found out that it needs one: 200 ms otherwise; 0 means that there is a new one
// at once.
func WithElectionTime(d time.Duration) Option {
	return func(c *zkserver.Config) { c.ElectionTime = d }
}

// EmbeddedEnsemble is an embedded server with several endpoints, which seems to be an
// ensemble. The endpoints are numbered from 1. The methods that take such numbers are
// the methods of Ensemble, so that a test can run on both, and have the same effect
// in the bubble's time. The methods of Server that change sessions, requests or the
// tree change the whole ensemble, not one endpoint; where the names are the same,
// reach Server's method by the field, as in e.Server.Heal(id). The methods of
// zkserver.Endpoint, which Endpoint returns, do more to a single endpoint, for
// example let it lag.
//
// Its methods may be called from any goroutine.
type EmbeddedEnsemble struct {
	*Server
}

// StartEnsemble starts a server with n endpoints in this process, 1, 3 or 5, of
// which the last leads. Like Start it opens no socket, works inside a bubble of
// testing/synctest, and ends with the test.
//
//	e := zksynctest.StartEnsemble(t, 3)
//	m := e.Connect(t)
//	...
//	old := e.Leader()
//	e.Kill(old)
//	next := e.WaitLeader(old)
//
// An even number of servers, which survives no more failures than one less, is
// refused; zkserver.NewEnsemble takes any.
func StartEnsemble(tb testing.TB, n int, opts ...Option) *EmbeddedEnsemble {
	tb.Helper()
	if n != 1 && n != 3 && n != 5 {
		tb.Fatalf("zksynctest: an embedded ensemble has 1, 3 or 5 servers, not %d", n)
	}
	return &EmbeddedEnsemble{start(tb, n, zkserver.Config{ElectionTime: usualElection}, opts)}
}

// Connect returns a Manager with a session on the ensemble, in memory. It knows all
// endpoints, and goes from one to the other as it has to. It is closed when the test
// ends; without a session within a minute the test fails at once, so call it from
// the goroutine of the test.
func (e *EmbeddedEnsemble) Connect(tb testing.TB, opts ...session.Option) *session.Manager {
	tb.Helper()
	return connect(tb, e.InMemory(), e.dialing(opts))
}

// ConnectTo is Connect for a client that knows endpoint i alone.
func (e *EmbeddedEnsemble) ConnectTo(tb testing.TB, i int, opts ...session.Option) *session.Manager {
	tb.Helper()
	return connect(tb, e.Endpoint(i).Addr(), e.dialing(opts))
}

func (e *EmbeddedEnsemble) dialing(opts []session.Option) []session.Option {
	return append([]session.Option{session.WithDialer(e.Dial)}, opts...)
}

// InMemory returns a connection string with the addresses of all endpoints, as Dial
// knows them.
func (e *EmbeddedEnsemble) InMemory() string {
	return e.join(func(i int) string { return e.Endpoint(i).Addr() })
}

// Servers returns a connection string with the TCP addresses of all endpoints. See
// Addr.
func (e *EmbeddedEnsemble) Servers() string {
	e.tb.Helper()
	return e.join(e.Addr)
}

func (e *EmbeddedEnsemble) join(addr func(int) string) string {
	addrs := make([]string, e.Size())
	for i := range addrs {
		addrs[i] = addr(i + 1)
	}
	return strings.Join(addrs, ",")
}

// Addr returns a TCP address of endpoint i on the loopback interface, for any client
// in any language. Like Server.Addr it fails the test inside a bubble.
func (e *EmbeddedEnsemble) Addr(i int) string {
	e.tb.Helper()
	return e.tcpAddr(i)
}

// check reports an error, as the methods of Ensemble do.
func (e *EmbeddedEnsemble) check(err error) {
	e.tb.Helper()
	if err != nil {
		e.tb.Errorf("zksynctest: %v", err)
	}
}

// wait bounds one step, in the bubble's time if there is one.
func (e *EmbeddedEnsemble) wait(step func(context.Context) error) {
	e.tb.Helper()
	ctx, cancel := realContext(context.Background())
	defer cancel()
	e.check(step(ctx))
}

// WaitLeader waits for a leader that is none of those named, and returns its
// number: after a leader was killed, paused or cut off, name it.
func (e *EmbeddedEnsemble) WaitLeader(not ...int) int {
	e.tb.Helper()
	var leader int
	e.wait(func(ctx context.Context) (err error) {
		if leader, err = e.Server.WaitLeader(ctx, not...); err != nil {
			err = fmt.Errorf("wait for a leader: %w", err)
		}
		return err
	})
	return leader
}

// WaitReady waits until all endpoints that are neither killed nor paused serve, as
// one leader and its followers in step.
func (e *EmbeddedEnsemble) WaitReady() {
	e.tb.Helper()
	e.wait(func(ctx context.Context) error {
		err := e.Server.WaitReady(ctx)
		if err != nil {
			err = fmt.Errorf("wait for all endpoints to serve: %w", err)
		}
		return err
	})
}
