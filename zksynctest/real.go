package zksynctest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/internal/proxy"
	"github.com/go-zksync/toolkit/zksynctest/internal/realzk"
)

// Client stands for the clients in those methods of Ensemble that take the two ends of a link. The
// servers are numbered from 1.
const Client = 0

// RequireRealEnv is the name of an environment variable. If its value is 1, RealZooKeeper fails a
// test that it would otherwise skip.
const RequireRealEnv = "ZKSYNC_REQUIRE_REAL"

// realTimeout bounds each step of an Ensemble on a busy machine: a server starts in well under a
// second.
const realTimeout = 60 * time.Second

// Ensemble is one or three Apache ZooKeeper servers, each in its own process on this machine, with
// the links between them and to their clients.
//
// The servers are numbered from 1. Each method returns after its effect, as its comment states. A
// method that does not succeed within a minute marks the test as failed and returns a zero value.
// It uses Errorf and not FailNow, so that methods may be called from any goroutine while the test
// runs. After the test, when the servers have ended, the methods do nothing.
//
// Real servers use real time: do not use an Ensemble in a bubble of testing/synctest.
type Ensemble struct {
	tb      testing.TB
	cluster *realzk.Cluster
	front   *realzk.Front
	shared  bool
}

// RealZooKeeper starts n servers of Apache ZooKeeper, 1 or 3, and returns when all of them serve;
// of three servers one leads and the others follow. The servers are stopped and their data is
// removed when the test ends. A failed test logs the end of each server's log.
//
//	e := zksynctest.RealZooKeeper(t, 3)
//	m := e.Connect(t)
//	...
//	old := e.Leader()
//	e.Kill(old)
//	next := e.WaitLeader(old)
//
// RealZooKeeper runs the release that is unpacked in ZOOKEEPER_HOME, or else the Debian package
// zookeeper. Without ZooKeeper or Java it skips the test, or fails it if ZKSYNC_REQUIRE_REAL is 1.
//
// Links are between processes on 127.0.0.1 and need no privileges: the configuration of each server
// has the addresses of relays instead of the addresses of its peers. On Linux the servers also end
// if the test binary is killed.
//
// RealZooKeeper must be called from the goroutine of the test.
func RealZooKeeper(tb testing.TB, n int, opts ...RealOption) *Ensemble {
	tb.Helper()
	config := realzk.NewConfig(n)
	for i, opt := range opts {
		if opt == nil {
			tb.Fatalf("zksynctest: start ZooKeeper: option %d is nil; leave it out", i+1)
		}
		opt(&config)
	}
	runtime := needReal(tb)
	config.Dir = tb.TempDir()
	// The context of the test has ended in a function of Cleanup.
	ctx, cancel := realContext(context.WithoutCancel(tb.Context()))
	defer cancel()
	cluster, err := realzk.Start(ctx, runtime, config)
	if err != nil {
		tb.Fatalf("zksynctest: start ZooKeeper: %v", err)
	}
	e := &Ensemble{tb: tb, cluster: cluster}
	tb.Cleanup(e.stop)
	e.front, err = cluster.NewFront()
	if err != nil {
		tb.Fatalf("zksynctest: open links to ZooKeeper: %v", err)
	}
	return e
}

// needReal returns the runtime of ZooKeeper, or skips the test. In a bubble it fails the test.
func needReal(tb testing.TB) realzk.Runtime {
	tb.Helper()
	if bubble() != "" {
		tb.Fatalf("zksynctest: a real ZooKeeper inside a synctest bubble would stop its clock; use Start or StartEnsemble, which work in memory")
	}
	runtime, err := realzk.FindRuntime()
	switch {
	case err == nil:
		return runtime
	case os.Getenv(RequireRealEnv) == "1":
		tb.Fatalf("zksynctest: %v\n%s\n(%s=1 makes this an error)", err, installHint, RequireRealEnv)
	default:
		tb.Skipf("\n%[1]s\nNOT TESTED AGAINST A REAL ZOOKEEPER: %[2]v\n%[3]s\n%[4]s=1 makes this skip an error.\n%[1]s",
			strings.Repeat("*", 78), err, installHint, RequireRealEnv)
	}
	return runtime
}

const installHint = "Install it by: apt-get install -y zookeeper (which starts no service), or unpack\n" +
	"a release of Apache ZooKeeper, set ZOOKEEPER_HOME to it, and have java in PATH."

// stop ends all processes and links.
func (e *Ensemble) stop() {
	if e.tb.Failed() {
		e.logTails()
	}
	if err := e.cluster.Close(); err != nil {
		e.tb.Errorf("zksynctest: stop ZooKeeper: %v", err)
	}
}

func (e *Ensemble) logTails() {
	for i := 1; i <= e.cluster.Size(); i++ {
		e.tb.Logf("the end of the log of ZooKeeper server %d:\n%s", i, e.cluster.LogTail(i))
	}
}

// realContext bounds one step.
func realContext(parent context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(parent, realTimeout, fmt.Errorf("not within %v", realTimeout))
}

// check reports an error, unless its only cause is the end of the test.
func (e *Ensemble) check(err error) {
	e.tb.Helper()
	if err == nil || e.cluster.Closed() || errors.Is(err, realzk.ErrClosed) || errors.Is(err, proxy.ErrClosed) {
		return
	}
	e.tb.Errorf("zksynctest: %v", err)
}

// Servers returns a connection string with the addresses of all servers. The addresses lead through
// the links to clients.
func (e *Ensemble) Servers() string {
	e.tb.Helper()
	addrs := make([]string, 0, e.cluster.Size())
	for i := 1; i <= e.cluster.Size(); i++ {
		addrs = append(addrs, e.Addr(i))
	}
	return strings.Join(addrs, ",")
}

// Addr returns the address of server i. The address leads through the server's link to clients. A
// client with only this address stays with that server.
func (e *Ensemble) Addr(i int) string {
	e.tb.Helper()
	addr, err := e.front.Addr(i)
	e.check(err)
	return addr
}

// DirectAddr returns the address of server i without the link: Cut, Reset and Delay do not affect
// clients of this address. The address may change when the server is started again.
func (e *Ensemble) DirectAddr(i int) string {
	e.tb.Helper()
	addr, err := e.cluster.Addr(i)
	e.check(err)
	return addr
}

// TLSAddr returns the address of the secure port of server i. The address leads through the
// server's link to clients. The servers must have been started with RealTLS.
func (e *Ensemble) TLSAddr(i int) string {
	e.tb.Helper()
	addr, err := e.front.TLSAddr(i)
	e.check(err)
	return addr
}

// TLS returns a new configuration for clients of the secure ports. It trusts the servers, and has
// the client certificate that they require.
func (e *Ensemble) TLS() *tls.Config {
	e.tb.Helper()
	config, err := e.cluster.ClientTLS()
	e.check(err)
	return config
}

// Log returns the log of server i so far, including earlier starts.
func (e *Ensemble) Log(i int) string {
	e.tb.Helper()
	log, err := e.cluster.Log(i)
	e.check(err)
	return log
}
