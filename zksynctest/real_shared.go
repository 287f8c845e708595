package zksynctest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/go-zksync/toolkit/zksynctest/internal/realzk"
)

// shared is the server that the tests of this binary share.
var shared struct {
	sync.Mutex
	cluster *realzk.Cluster
	dir     string
	err     error // reason for which it does not start, so that the next test fails at once
}

// RealShared returns a single server that the tests of this binary share. The first call starts it
// with default options. Each test has its own links to the server, so that Cut, Reset and Delay
// with Client affect no other test. The tests share the tree and its sessions: use only paths of
// your own test. The server cannot be killed or paused.
//
// Stop the server from TestMain with StopShared or StopSharedAfter. Otherwise RealShared behaves
// like RealZooKeeper.
func RealShared(tb testing.TB) *Ensemble {
	tb.Helper()
	runtime := needReal(tb)
	cluster, err := sharedCluster(runtime)
	if err != nil {
		tb.Fatalf("zksynctest: start the shared ZooKeeper: %v", err)
	}
	front, err := cluster.NewFront()
	if err != nil {
		tb.Fatalf("zksynctest: open links to the shared ZooKeeper: %v", err)
	}
	e := &Ensemble{tb: tb, cluster: cluster, front: front, shared: true}
	tb.Cleanup(func() {
		if tb.Failed() {
			e.logTails()
		}
		if err := front.Close(); err != nil {
			tb.Errorf("zksynctest: close links to the shared ZooKeeper: %v", err)
		}
	})
	return e
}

func sharedCluster(runtime realzk.Runtime) (*realzk.Cluster, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster != nil || shared.err != nil {
		return shared.cluster, shared.err
	}
	shared.cluster, shared.dir, shared.err = startShared(runtime)
	return shared.cluster, shared.err
}

func startShared(runtime realzk.Runtime) (*realzk.Cluster, string, error) {
	dir, err := os.MkdirTemp("", "zksynctest")
	if err != nil {
		return nil, "", fmt.Errorf("make a directory: %w", err)
	}
	config := realzk.NewConfig(1)
	config.Dir = dir
	ctx, cancel := realContext(context.Background())
	defer cancel()
	cluster, err := realzk.Start(ctx, runtime, config)
	if err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(dir))
	}
	return cluster, dir, nil
}

// StopShared stops the server that RealShared has started and removes its data. Without such a server it does nothing.
// Call StopShared from TestMain after the tests.
func StopShared() error {
	shared.Lock()
	cluster, dir := shared.cluster, shared.dir
	shared.cluster, shared.dir, shared.err = nil, "", nil
	shared.Unlock()
	if cluster == nil {
		return nil
	}
	return errors.Join(cluster.Close(), os.RemoveAll(dir))
}

// Runner is the part of testing.M that runs the tests.
type Runner interface{ Run() int }

// StopSharedAfter returns a Runner that runs m and then StopShared, for checks after the tests that
// require that nothing is left:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(zksynctest.StopSharedAfter(m)) }
func StopSharedAfter(m Runner) Runner { return stopper{m} }

type stopper struct{ tests Runner }

// Run runs the tests and stops the shared server.
func (s stopper) Run() int {
	code := s.tests.Run()
	if err := StopShared(); err != nil {
		fmt.Fprintf(os.Stderr, "zksynctest: stop the shared ZooKeeper: %v\n", err)
		return max(code, 1)
	}
	return code
}
