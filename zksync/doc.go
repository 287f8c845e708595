// Package zksync has synchronization primitives that hold between processes,
// in the manner of the standard library's sync, on Apache ZooKeeper.
//
//	mu := zksync.NewMutex(m, "/locks/orders")
//	if err := mu.Lock(ctx); err != nil {
//		return err
//	}
//	defer mu.Unlock()
//
// A [Mutex] is a mutual exclusion lock, an [RWMutex] a lock for many readers or one
// writer, and a [Semaphore] limits how many units are held at the same time. An
// [Election] chooses a leader, and a [Group] lists its live members. A [Barrier] is a
// gate, and the participants of a [DoubleBarrier] begin and end their rounds
// together. A [Queue] hands messages from producers to consumers, a [PriorityQueue]
// in the order of their priorities, and a [DelayQueue] at their due times.
//
// A constructor takes a *session.Manager and a path and does no I/O: the first call that would
// send a request reports a nil Manager, an invalid path or an invalid option. A value may be
// shared by goroutines, and used again after any error. Zero values cannot be used.
//
// Make values early and keep them: the first grant of a value that was made in a session that
// was idle for longer than half its timeout waits for a quarter of the timeout (see
// [session.Manager.ExpectHolds]).
//
// # The life of a hold
//
//	           Lock                  first in line
//	free ---------------> waiting -------------------> held ----> Unlock: nil
//	  ^                   |     ^ session lost:          |
//	  |   ctx ends        |     | join again             | session lost, znode removed,
//	  +-------------------+-----+                        v Manager closed
//	  |                                                 lost ---> Unlock: ErrLost
//	  +-------------------------- Unlock -----------------+
//
// # The life of a message
//
//	        Put           a consumer claims it          received
//	(sent) -----> waiting --------------------> claimed ---------> being worked on
//	               ^  ^                            |                  |        |
//	               |  |    Close, session lost     |                  |        |
//	               |  +----------------------------+                  |        |
//	               |      Nack, Retry, Close, session lost            |        |
//	               +--------------------------------------------------+        |
//	                               Ack, MoveTo; from Chan and Take at once     v
//	                                                                        removed
//
// A message that comes back comes to its old position, ahead of all messages that were put later. After Retry it
// comes back when the delay is over, ahead of the messages that wait then. Attempts counts the deliveries.
//
// # Guarantees
//
//   - While the context of a hold lives, no other process holds the lock. The context
//     ends, with a cause, before the server can give the lock to another process, even
//     when no server can be reached. A release that comes too late returns [ErrLost].
//   - Each hold has a fencing token ([Token]) that only grows.
//   - A cancelled acquisition owns nothing afterwards and leaves no znode.
//   - A lost connection costs neither a lock nor the position in line. After a lost
//     session a waiting call joins the line again.
//   - Contention is not an error.
//   - Processes are served in the order of their arrival; see [RWMutex] and
//     [Semaphore] for readers and for requests of several units.
//   - A message is put into a queue once, and the messages of one goroutine are in
//     order. If the outcome of a call cannot be known, its error is
//     [ErrOutcomeUnknown].
//   - Each message goes to one consumer, first in first out as deliveries start. The
//     messages of a consumer that dies go to other consumers; no unreceived message
//     is lost. A single consumer sees the order of arrival, even over lost sessions.
//   - Without a crash or a lost session each message is delivered once. Messages
//     delivers at least once, and at most one Ack of a message succeeds. Take delivers
//     exactly once, also across sessions, and beside clients of other kinds.
//   - A message that cannot be read or removed is skipped, and the other messages are
//     delivered.
//   - An idle consumer makes no requests, and the cost of a message does not depend
//     on how many wait.
//
// # Non-guarantees
//
// A process that is paused between the check of its context and a write may write
// late. Let the resource check tokens; see [Token]. If an operator removes the znode of a
// holder, the next contender gets the lock at once, and the holder is told as fast as the
// network allows, but not in the first 100 ms of a hold: a short hold costs no request for
// a watch. An Unlock in this time that hands the lock to another goroutine, or lingers,
// does not notice the removal. Package session states the assumptions of the session's lease.
//
// A message that was received from a queue's Chan is lost if the process dies before
// the work on it is done: use Messages for such work. After a lost session, messages may
// be delivered again: see Chan, Messages and Ack. A queue with several consumers starts
// deliveries in order, and does not decide the order in which the work is done. Claims
// bind the consumers of this package only: a message may go both to Chan or Messages and
// to ZooKeeper's recipe or Curator.
//
// # The server's side
//
// Znodes have Curator's layout, so that Go and JVM processes exclude each other on the
// same path; [WithLayout] has other layouts, and docs/migrating.md lists the clients that
// can share each primitive. Directories are container znodes, which the server removes
// when they have been empty for a while. The directory of a queue is not empty once a consumer has
// used it: the znode that puts the claims in order stays. The directories for the messages of a
// PriorityQueue and of a DelayQueue are ordinary znodes; consumers delete the latter.
//
// Each contender writes its ID to its znode: see [WithID]. The Contenders method of a
// primitive returns the holder and the waiting contenders, and [Inspect] finds the
// primitive that uses a path. The command zksync/cmd/zklock shows both.
//
// The data of a primitive's directory belongs to the primitive: the path of a Mutex, of an
// RWMutex, of an Election and of a DoubleBarrier, and the directories locks and leases
// below the path of a Semaphore. A process that joins writes an empty value there, and
// data watches see that write. A line that finds data there at its first use does not
// write to the directory, and makes one more request for each acquisition. Keep data of
// your own in another znode.
//
// Beside the messages of a [Queue] are directories that sort after them: zksync-claims has
// a znode with the claims of each consumer, zksync-idle the line of idle consumers,
// zksync-later the messages of Retry, and zksync-markers a znode for each value that writes.
package zksync
