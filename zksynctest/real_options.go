package zksynctest

import (
	"time"

	"github.com/go-zksync/toolkit/zksynctest/internal/realzk"
)

// RealOption changes the configuration of the servers that RealZooKeeper starts. A
// value that ZooKeeper cannot take fails the test there.
type RealOption func(*realzk.Config)

// RealTickTime sets the tick, ZooKeeper's unit of time, which is 500 ms
// otherwise. Servers grant session timeouts from 2 ticks to 60 s, and check
// for expired sessions once a tick.
func RealTickTime(d time.Duration) RealOption {
	return func(c *realzk.Config) { c.TickTime = d }
}

// RealSyncLimit sets after how many ticks without a word leader and follower
// give each other up; 5 otherwise.
func RealSyncLimit(ticks int) RealOption {
	return func(c *realzk.Config) { c.SyncLimit = ticks }
}

// RealTLS gives each server a secure port besides the plain one, with keys
// made for the occasion: see TLSAddr and TLS. The servers then talk to all
// clients by Netty.
func RealTLS() RealOption {
	return func(c *realzk.Config) { c.TLS = true }
}

// RealProperty sets a line of every server's zoo.cfg. ZooKeeper turns keys
// that zoo.cfg does not know into system properties of the same name with
// "zookeeper." before it.
//
// Servers do not wait for the disk, because they get killed and the machine
// does not; RealProperty("forceSync", "yes") has them wait.
func RealProperty(key, value string) RealOption {
	return func(c *realzk.Config) { c.Properties[key] = value }
}

// RealJVM adds flags for the Java virtual machine of every server, after those
// that make it small and quick to start (256 MB of heap, the serial collector,
// the first compiler only).
func RealJVM(flags ...string) RealOption {
	return func(c *realzk.Config) { c.JVM = append(c.JVM, flags...) }
}
