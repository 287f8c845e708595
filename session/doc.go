// Package session keeps a process connected to a ZooKeeper ensemble: one
// long-lived [Manager] over a sequence of ZooKeeper sessions.
//
//	m, err := session.Connect(ctx, "zk1:2181,zk2:2181,zk3:2181/app")
//	if err != nil { ... }
//	defer m.Close()
//
//	s, err := m.Session(ctx)             // a live session
//	data, _, err := s.Get(ctx, "/config")
//
// # States
//
//	    +------------------ Lost <-----------------+
//	    v                    ^                     |
//	Connecting ----> Connected ----> Suspended ----+
//	                     ^               |
//	                     +---------------+
//
// and Closed from everywhere, at Close. A [Session] lives through Connected and
// Suspended: a broken connection, a restarted server or a move to another one
// costs nothing but time. When it is lost, the Manager opens another one, which
// is another Session: what was asked of one never happens under the next.
//
// # Guarantees
//
//   - Every call returns when its ctx is done, whatever the network does. What an
//     abandoned call may still create is cleaned up where that was asked for
//     ([Session.CreateProtected]).
//   - While something is held ([Lease]), [Session.Context] ends before the server
//     can give it to anybody else: two thirds of the session timeout after the
//     last request that provably reached the leader, on a local clock, whether or
//     not anyone can be reached.
//   - Reads, and writes that cannot happen twice, are repeated over lost
//     connections. Any other write whose answer is lost fails with
//     [ErrConnectionLost]: it may or may not have happened.
//   - After a reconnect nothing is read that is older than what was read before,
//     and watches have missed nothing.
//   - [Manager.Close] leaves no goroutine behind.
//
// # Non-guarantees
//
// The lease assumes that the two clocks run at about the same rate, and a
// process that runs: one that was stopped between looking at a context and
// acting on it can be late, whatever library it uses. Resources should check
// fencing tokens. A machine that was suspended is noticed by comparing the wall
// clock, so a wall clock that is set forward by more than the lease ends it. Not
// covered are a leader that is deposed without knowing it while the session
// timeout is below five server ticks (see [WithStrictLease]), and servers whose
// minSessionTimeout was set below two ticks.
//
// # How it works
//
// go-zookeeper opens the session, pings and closes it. It sees its connection
// through a wrapper on which our requests travel beside its own, under negative
// xids, because its calls take no context, cannot be withdrawn, and are kept
// across an expiry to run under the next session. The wrapper sends the
// credentials and a sync ahead of everything on a new connection, arms the
// watches again, and knows which answers prove that the leader was reached.
package session
