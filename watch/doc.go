// Package watch turns ZooKeeper's one-shot watches into channels and loops that
// follow a znode, a list of children or a whole subtree.
//
//	for state, err := range watch.Node(ctx, m, "/app/config").All() {
//		if err != nil {
//			return err // ctx ended, the Manager was closed, or the path may not be read
//		}
//		apply(state.Data)
//	}
//
// [Value] decodes the data as well. [Tree] keeps a local mirror of a subtree.
// [NewStream] makes a stream from requests or from other streams.
//
// # States of a stream
//
//	           read              the znode changes: read again
//	(begin) ---------> reported <-----------------------------+
//	                    | |                                   |
//	                    | +-----------------------------------+
//	                    |    connection lost: nothing, unless the znode changed meanwhile
//	                    |    session lost:    the same, under the next session
//	                    |    refused for the moment: read again after a pause
//	                    v
//	                   end     Events is closed, Err returns the reason
//
// # Guarantees
//
//   - The first event is the present state: no older than the answers that this
//     Manager's session had received when the stream was made, so the state includes
//     the caller's own writes.
//   - Every state that lasts is reported, in the order of zxids, and never an older
//     state after a newer one, over any number of connections, servers and sessions.
//   - Only changes are reported. A znode that was deleted and created again has
//     changed, even if its data and version are equal.
//   - A slow reader gets the newest state. It blocks no other reader and costs no
//     memory.
//   - Streams of the same Manager and path share one watch on the server, one
//     goroutine, and one read for each change, however many streams there are.
//   - A stream that has ended leaves nothing behind: when the last stream of a path
//     ends, its goroutine ends and its watch is given up.
//   - A stream says why it has ended: [EndError] tells the end of ctx, the end of the
//     Manager, and a final refusal apart. A refusal that is not final, as of a server
//     that is overloaded, ends nothing.
//
// # Non-guarantees
//
// States in between may be missed: a watch says that something has changed, and
// more may have changed by the time of the read. A znode that was created and
// deleted again between two reads is not reported. While no server can be reached
// nothing is reported, and the last state may be out of date: programs that must
// not act on such a state look at the Manager's States. Reads are answered by the
// server that the session is connected to, which may lag behind the leader;
// [Cache.WaitSynced] waits for that server.
//
// A server of version 3.8.4, 3.9.2 or newer keeps the event of a change from a
// session that may not read the znode at that moment, and takes the watch away. If
// an ACL is closed to this process, the znode changes, and the ACL is opened again,
// then no server reports the change, nor the changes that follow. Node, Children
// and Value read the znode again after the next reconnect. A Tree, for which that
// would take as many requests as the first load, does so in the next session only.
// These reads go ahead of the transactions that keep a hold: in a process that holds
// locks, follow tens of thousands of paths by a Tree, or by another Manager.
//
// docs/architecture.md says how a watch becomes a stream, and why no older state can
// follow a newer one.
package watch
