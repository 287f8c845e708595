package main

import (
	"fmt"
	"net"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// lockPath is the lock's directory. Two runs against one ensemble share it, and take
// turns like other processes.
const lockPath = "/zksync-quickstart/lock"

// A stage is the server that the workers connect to, with its faults.
type stage struct {
	servers string
	about   string
	dial    session.DialFunc
	expire  func(id int64) error // nil where a session cannot be expired by force
	lock    func(m *session.Manager, worker string) *zksync.Mutex
	close   func()
}

// theLock gives every worker a value of its own for the one lock.
func theLock(m *session.Manager, _ string) *zksync.Mutex { return zksync.NewMutex(m, lockPath) }

func openStage(cfg config) (*stage, error) {
	if cfg.servers != "" {
		return &stage{
			servers: cfg.servers,
			about:   "the ensemble at " + cfg.servers,
			dial:    (&net.Dialer{}).DialContext,
			lock:    theLock,
			close:   func() {},
		}, nil
	}
	// Servers expire sessions at multiples of their tick. A short one keeps the
	// run short.
	srv, err := zkserver.New(zkserver.Config{
		TickTime:          max(cfg.timeout/10, time.Millisecond),
		MinSessionTimeout: cfg.timeout,
		MaxSessionTimeout: cfg.timeout,
	})
	if err != nil {
		return nil, fmt.Errorf("start a server in this process: %w", err)
	}
	return &stage{
		servers: "127.0.0.1:2181", // stands for the server; the dialer goes there in memory
		about:   "a ZooKeeper server in this process",
		dial:    srv.Dial,
		expire:  srv.ExpireSession,
		lock:    theLock,
		close:   func() { srv.Close() },
	}, nil
}
