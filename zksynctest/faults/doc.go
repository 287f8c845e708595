// Package faults contains tests only. Each test brings about, on real Apache
// ZooKeeper servers, a fault that once broke a promise of this module, and checks
// that the promise holds:
//
//   - TestLease: while the context of a hold lives, no other client holds the same
//     lock. The faults are a deposed leader that does not notice its deposition, a
//     follower that is cut off, a leader that is paused, and a session timeout that
//     a rolling restart lowers.
//   - TestWatches: a subscriber that lives through two lost connections in quick
//     succession misses no change.
//   - TestThrottled: clean-up reaches its end although the server refuses requests
//     for a while.
//
// A plain go test runs each scenario of TestLease once, in a small size. The
// scenarios in their full size, many times each, print a table of the margins:
//
//	make lease-lab RUNS=20
//
// The package uses session, zksync, watch and zksynctest.
//
// Terms: T is the session timeout. Client A is the client that the fault hits, and
// client B waits for A's lock on the servers that A does not use. The margin of a
// run is the time from the end of A's held context to the moment when B gets the
// lock, by the monotonic clock of the one process that runs both clients. A run
// with a negative margin had two holders: an overlap.
package faults
