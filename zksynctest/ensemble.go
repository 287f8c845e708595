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

// usualElection is the approximate duration of an election of three idle servers on one machine.
const usualElection = 200 * time.Millisecond

// WithElectionTime sets the duration of an election in an embedded ensemble: the time without a
// leader after the ensemble has noticed that it needs one. The default is 200 ms; 0 means no time.
func WithElectionTime(d time.Duration) Option {
	return func(c *zkserver.Config) { c.ElectionTime = d }
}

// EmbeddedEnsemble is an embedded server with several endpoints that behave like an ensemble. The
// endpoints are numbered from 1. The methods that take such numbers are the methods of Ensemble, so
// that a test can run on both kinds, and have the same effect in the bubble's time. The methods of
// Server that change sessions, requests or the tree affect the whole ensemble, not one endpoint. If
// both have a method of the same name, call Server's method through the field, as in
// e.Server.Heal(id). Endpoint returns a zkserver.Endpoint, which has further methods for a single
// endpoint, for example Lag.
//
// Its methods may be called from any goroutine while the test runs. After the test, when the server
// is closed, the methods do nothing.
type EmbeddedEnsemble struct {
	*Server
}

// StartEnsemble starts a server with n endpoints in this process. n is 1, 3 or 5, and the last
// endpoint leads. Like Start it opens no socket, works inside a bubble of testing/synctest, and
// ends with the test.
//
//	e := zksynctest.StartEnsemble(t, 3)
//	m := e.Connect(t)
//	...
//	old := e.Leader()
//	e.Kill(old)
//	next := e.WaitLeader(old)
//
// StartEnsemble fails the test for an even number of servers, because n servers with an even n
// survive no more failures than n-1 servers; zkserver.NewEnsemble accepts any number.
func StartEnsemble(tb testing.TB, n int, opts ...Option) *EmbeddedEnsemble {
	tb.Helper()
	if n != 1 && n != 3 && n != 5 {
		tb.Fatalf("zksynctest: an embedded ensemble has 1, 3 or 5 servers, not %d", n)
	}
	return &EmbeddedEnsemble{start(tb, n, zkserver.Config{ElectionTime: usualElection}, opts)}
}

// Connect returns a Manager with a session on the ensemble, in memory. The Manager knows all
// endpoints, and moves between them as necessary. It is closed when the test ends. Without a
// session within a minute the test fails at once, so call Connect from the goroutine of the test.
func (e *EmbeddedEnsemble) Connect(tb testing.TB, opts ...session.Option) *session.Manager {
	tb.Helper()
	e.Server.check(tb)
	return connect(tb, e.InMemory(), e.dialing(opts))
}

// ConnectTo is Connect for a client that knows only endpoint i.
func (e *EmbeddedEnsemble) ConnectTo(tb testing.TB, i int, opts ...session.Option) *session.Manager {
	tb.Helper()
	e.Server.check(tb)
	return connect(tb, e.Endpoint(i).Addr(), e.dialing(opts))
}

func (e *EmbeddedEnsemble) dialing(opts []session.Option) []session.Option {
	return append([]session.Option{session.WithDialer(e.Dial)}, opts...)
}

// InMemory returns a connection string with the in-memory addresses of all endpoints, for Dial.
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

// check reports an error like the methods of Ensemble, until the end of the test.
func (e *EmbeddedEnsemble) check(err error) {
	e.tb.Helper()
	if err != nil && !e.ended.Load() {
		e.tb.Errorf("zksynctest: %v", err)
	}
}

// wait bounds one step, in the bubble's time inside a bubble.
func (e *EmbeddedEnsemble) wait(step func(context.Context) error) {
	e.tb.Helper()
	ctx, cancel := realContext(context.Background())
	defer cancel()
	e.check(step(ctx))
}

// WaitLeader waits for a leader whose number is not in not, and returns its number. After a leader
// was killed, paused or cut off, pass its number.
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

// WaitReady waits until all endpoints that are neither killed nor paused serve: one leads, and the
// others follow. They are up to date, except an endpoint that lags by [zkserver.Endpoint.Lag].
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
