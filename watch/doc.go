// Package watch turns ZooKeeper's one-shot watches into channels and loops that
// follow a znode, a list of children or a whole subtree for as long as wanted.
//
//	for state, err := range watch.Node(ctx, m, "/app/config").All() {
//		if err != nil {
//			return err // ctx ended, the Manager was closed, or the path may not be read
//		}
//		apply(state.Data)
//	}
//
// # What a stream tells
//
//	           read           the znode changes: read again
//	(begin) ---------> told <------------------------------+
//	                    | |                                |
//	                    | +--------------------------------+
//	                    |    connection lost: nothing, unless it changed meanwhile
//	                    |    session lost:    the same, under the next session
//	                    v
//	                   end     Events is closed, Err says why
//
// # Guarantees
//
//   - The first event is the present state: no older than what this Manager's
//     session had been answered when the stream was made, so it includes one's
//     own writes.
//   - Every state that lasts is told, in the order of zxids, and never an older
//     one after a newer one, over any number of connections, servers and sessions.
//   - Nothing is told that is no change. A znode that was deleted and made again
//     has changed, even if its data and version are equal.
//   - A slow reader gets the newest state. It blocks nobody and costs no memory.
//   - Streams of the same Manager and path share one watch on the server, one
//     goroutine, and one read for each change, however many there are.
//   - A stream that has ended leaves nothing behind: when the last one of a path
//     has, its goroutine is gone and its watch is given up.
//
// # Non-guarantees
//
// States in between may be missed: a watch says that something has changed, and
// by the time of the read more may have. A znode that was made and deleted again
// between two reads was never there. While no server can be reached nothing is
// told, and the last state may be out of date: whoever must not act on such a
// state looks at the Manager's States. Reads come from the server at hand, which
// may lag behind the leader; [Cache.WaitSynced] waits for it.
//
// # How it works
//
// A watch is armed by the very read whose result is told, so no change can slip
// in between. After a reconnect the session arms it again and the server compares
// with what was last seen; after the loss of a session everything is read again
// and compared here: existence, czxid (the instance), mzxid (the data) and pzxid
// (the children).
//
// Why no older state can follow a newer one: a source reads one thing at a time,
// and a connection answers in order. When a session moves to another server it
// shows the newest zxid that it has seen, and a server that is behind refuses it.
// The next session begins with a transaction of its own, the opening, which the
// server that answers must have applied, and with it all that was committed, and
// so could be read, before; where sessions are local to a server, the sync that
// comes first on each connection takes its place.
package watch
