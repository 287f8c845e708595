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
//   - While something is held ([Lease]), [Session.Context] ends before any server
//     can give it to another client: at [Session.Deadline], by a local clock, whether or
//     not a server can be reached. Only transactions that a quorum has committed
//     move the Deadline.
//   - Reads, and writes that cannot happen twice, are repeated over lost
//     connections. Any other write whose answer is lost fails with
//     [ErrConnectionLost]: it may or may not have happened.
//   - A request that a server has not carried out, because it is under load, is
//     sent again until ctx ends, with pauses that grow to a second.
//   - The error of a call that its ctx ended matches ctx.Err() and the cause of ctx,
//     and [ClassOf] tells this error from the answer of a server, whatever the cause
//     wraps.
//   - After a reconnect nothing is read that is older than what was read before,
//     and watches have missed nothing.
//   - [Manager.Close] leaves no goroutine behind.
//
// # Non-guarantees
//
// A process that was stopped between the look at a context and the action that
// follows can act late, whatever library it uses. Resources should check fencing tokens.
//
// The lease makes these assumptions about the ensemble, where T is the session
// timeout:
//
//   - The clocks of client and servers run at about the same rate: their
//     difference over T, and the delays of pings between servers, are together at
//     most T/20.
//   - All servers have one tickTime, and T is at least two ticks, or four behind an
//     ObserverMaster. (A minSessionTimeout below two ticks breaks this.)
//   - The link of a follower to its leader has no second stall or cut right after
//     a stall or cut of T/4 or more, before the follower's next report, which comes
//     within half a tick.
//   - A leader ends the sessions that have expired within T/4.
//   - maxSessionTimeout is not lowered below the T of a session while the answer
//     to a reconnect of that session is lost.
//   - No administrator closes sessions.
//
// A suspension of the machine is noticed by the clocks of the kernel on Linux. On
// other systems a wall clock that is set forward by more than T/20 counts as a
// suspension.
//
// # How it works
//
// go-zookeeper opens the session, pings and closes it. It sees its connection
// through a wrapper on which our requests travel beside its own, under negative
// xids, because its calls take no context, cannot be withdrawn, and are kept
// across an expiry to run under the next session. The wrapper sends the
// credentials and a sync ahead of everything on a new connection, arms the
// watches again, and makes the requests that prove the session alive in place of
// go-zookeeper's pings.
package session
