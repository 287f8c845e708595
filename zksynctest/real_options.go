package zksynctest

import (
	"time"

	"github.com/go-zksync/toolkit/zksynctest/internal/realzk"
)

// RealOption changes the configuration of the servers that RealZooKeeper starts. RealZooKeeper
// fails the test for a value that ZooKeeper does not accept.
type RealOption func(*realzk.Config)

// RealTickTime sets the tick, ZooKeeper's unit of time. The default is 500 ms. Servers grant
// session timeouts from 2 ticks to 60 s, and check for expired sessions once a tick.
func RealTickTime(d time.Duration) RealOption {
	return func(c *realzk.Config) { c.TickTime = d }
}

// RealSyncLimit sets the number of ticks after which a leader and a follower that hear nothing from
// each other give each other up. The default is 5.
func RealSyncLimit(ticks int) RealOption {
	return func(c *realzk.Config) { c.SyncLimit = ticks }
}

// RealTLS adds a secure port to each server, with new keys: see TLSAddr and TLS. The servers then
// use Netty for all clients.
func RealTLS() RealOption {
	return func(c *realzk.Config) { c.TLS = true }
}

// RealProperty sets a line of every server's zoo.cfg. ZooKeeper turns unknown keys of zoo.cfg into
// system properties with the prefix "zookeeper.".
//
// By default servers do not wait for the disk, because tests kill processes and not the machine;
// RealProperty("forceSync", "yes") makes them wait.
func RealProperty(key, value string) RealOption {
	return func(c *realzk.Config) { c.Properties[key] = value }
}

// RealJVM adds flags for the Java virtual machine of every server, after the default flags, which
// make it small and quick to start (256 MB of heap, the serial collector, only the first compiler).
func RealJVM(flags ...string) RealOption {
	return func(c *realzk.Config) { c.JVM = append(c.JVM, flags...) }
}
