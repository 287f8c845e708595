// Package session keeps a process connected to a ZooKeeper ensemble, with one long-lived
// [Manager] over a sequence of ZooKeeper sessions.
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
// Every state leads to Closed when the Manager closes. A [Session] lasts through
// Connected and Suspended: a broken connection, a restarted server or a move to another
// server delays the calls of the Session, and has no other effect unless it lasts for more than
// a quarter of the session timeout. When a Session is lost,
// the Manager opens a new Session. A request that was made under one Session never runs
// under the next.
//
// # Guarantees
//
//   - Every call returns when its ctx is done, regardless of the network. An abandoned
//     [Session.CreateProtected] may still create its znode. The session deletes that
//     znode in the background.
//   - While something is held ([Lease]), [Session.Context] ends before any server can
//     give the held znode to another client. The context ends at [Session.Deadline], by a
//     local clock, whether or not a server can be reached. Only transactions that a
//     quorum has committed move the Deadline.
//   - Reads, and writes that cannot happen twice, are repeated over lost connections. Any
//     other write whose answer is lost fails with [ErrConnectionLost]: the write may or
//     may not have happened.
//   - A request that a server has not carried out because of load is sent again until ctx
//     ends, with pauses that grow to a second.
//   - If ctx ended the call, the error matches ctx.Err() and the cause of ctx. [ClassOf]
//     distinguishes this error from the answer of a server, even if the cause wraps the
//     error of an answer.
//   - After a reconnect no read returns older data than an earlier read, and no watch has
//     missed a change.
//   - [Manager.Close] leaves no goroutine behind.
//
// # Probes
//
// A readiness probe may ask whether [Manager.State] is [Connected]. After a network has
// failed without a sign, the Manager stays Connected for up to two thirds of the session timeout, and
// for up to a third while it holds something.
// Connect returns with the first session, so a process is not ready before that. A liveness
// probe should not ask: an outage of the servers ends by itself, and a restart does not
// help.
//
// # Non-guarantees
//
// A process that was stopped between its check of a context and the action that follows
// can act late, with any library. Resources should check fencing tokens.
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
// On Linux the clocks of the kernel show a suspension of the machine. On other systems a
// wall clock that is set forward by more than T/20 counts as a suspension.
package session
