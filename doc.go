// Package toolkit is the root of a toolkit for coordinating processes through
// Apache ZooKeeper. It holds no code; the packages below it do.
//
//   - [github.com/go-zksync/toolkit/zksync] has the synchronization primitives, in
//     the manner of the standard library's sync: begin there.
//   - [github.com/go-zksync/toolkit/watch] follows znodes, as channels and loops.
//   - [github.com/go-zksync/toolkit/session] keeps a process connected: one
//     Manager over a sequence of ZooKeeper sessions, with contexts everywhere.
//   - [github.com/go-zksync/toolkit/zksynctest] tests code that uses the toolkit,
//     in a testing/synctest bubble if you like, on an embedded server that can be
//     made to fail in many ways, or on real ones.
//   - [github.com/go-zksync/toolkit/zksynctest/zkserver] is that embedded server,
//     for programs that have no testing.TB.
//
// A whole lock, without anything that could be left out:
//
//	m, err := session.Connect(ctx, "zk1:2181,zk2:2181,zk3:2181/app")
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//
//	mu := zksync.NewMutex(m, "/locks/orders")
//	return mu.Do(ctx, func(ctx context.Context) error {
//		// Nobody else holds the lock while this ctx lives.
//		return work(ctx)
//	})
//
// # The layers
//
//	your code                             your tests
//	    |                                     |
//	    v                                     v
//	 zksync     locks, elections, queues  zksynctest     faults, bubbles, real servers
//	    |                                  |      |
//	    v                                  |      v
//	 watch      channels and loops         |   zkserver  the embedded server, which
//	    |                                  |             imports the standard library only
//	    v                                  |
//	 session    sessions, lease  <---------+
//	    |
//	    v
//	go-zookeeper/zk
//
// Imports go along the arrows and never back. A program that uses the toolkit
// gets go-zookeeper, golang.org/x/sync and go.uber.org/zap with it, and nothing
// else; no package but tests and examples imports zksynctest.
//
// # Guarantees
//
//   - One holder at a time. The context of a hold ends, on a local clock, before the
//     servers can give the lock to another process, even if no server can be reached.
//   - Every call that takes a context returns when that context is done, even if the
//     network is down, and a cancelled acquisition leaves no znode behind.
//   - Each hold has a fencing token that only grows, by which a resource can refuse a
//     holder that acts too late.
//   - A message is put into a queue once, and the messages of one goroutine are in
//     order, even when connections and sessions are lost. The documentation of each
//     way to consume states its promises.
//   - Closing a Manager leaves no goroutine behind.
//
// # Non-guarantees
//
//   - A process that is stopped between the check of its context and a write writes
//     late; so does a process whose clock runs at another rate than the servers'
//     clocks. No lock service can prevent that. Let the resource check tokens.
//   - If an administrator deletes a holder's znode or closes its session, the next
//     contender gets the lock at once. The holder is told as fast as the network
//     allows.
//   - Some settings of the servers weaken the promise about time: package session
//     says which.
package toolkit
