// Package zkserver is a ZooKeeper server that runs inside a Go program, for tests and examples and
// for experiments without an ensemble. The server speaks the protocol of Apache ZooKeeper 3.9 to
// any client: over TCP with [Server.Listen] and [Server.Serve], or in memory with [Server.Dial].
//
// # Behaviour like the real server
//
// The server implements:
//
//   - results and error codes, and the order of the checks;
//   - zxids, including the zxid that a failed write takes;
//   - the fields of a Stat;
//   - sequence numbers and their overflow;
//   - multi and multiRead;
//   - one-shot, persistent and recursive watches, which coexist on a path. A watch event precedes
//     the reply to the request that caused it, and is hidden from clients without the read
//     permission;
//   - ACLs with the schemes world, auth, digest and ip, and the super user;
//   - containers and TTL nodes, which the server reaps;
//   - the usage counts of quotas;
//   - the four-letter words. The server answers only srvr unless [Config.FourLetterWords] allows
//     more;
//   - limits of frames, connections and handshakes;
//   - sessions, which expire in buckets at multiples of the tick: after their timeout and at most a
//     tick later.
//
// [Config.Compat38] selects the behaviour of 3.8.0 where it differs.
//
// # Differences from the real server
//
// There is no consensus: the endpoints of an ensemble share one tree. The tree survives
// [Server.Stop] and [Server.Start], and with [Config.DataFile] also the process. Further
// differences:
//
//   - SASL has the mechanism DIGEST-MD5 only, with [Config.SASLUsers].
//   - reconfig is refused.
//   - Hard limits of quotas are enforced only with [Config.EnforceQuota], as is the real server's
//     default. Violations of soft limits are not logged. Limits without stats, and stats that are
//     not numbers, may be handled in another way, and the Stat in the answer to a create of stats
//     has the new data.
//   - mntr and cons report 0 outstanding requests, and leave out values that only real servers
//     have. envi has no Java properties, dirs and conf have no directory except the directory of
//     [Config.DataFile], and hash has no digests. conf and /zookeeper/config do not list the
//     servers of an ensemble.
//   - A quota of the root has no effect: limits in /zookeeper/quota stop a real server, and stats
//     there keep the data that the client wrote.
//   - An ACL entry with the null id is an entry with the empty id. A real server answers
//     [ErrMarshalling] to such an entry of the schemes world, digest, ip and sasl.
//   - setWatches with a null path is refused as a whole. A real server first handles the paths
//     before the null path.
//   - With [Config.RequireSASL] a ping is refused under the xid -2, whatever its own xid was. The
//     first token of a SASL exchange must be empty.
//   - A string that is not UTF-8 is read with one replacement character for each invalid byte, and
//     not for each malformed sequence.
//   - The scheme ip accepts IPv6 addresses.
//   - An operation that clients cannot use, such as -10, takes no zxid.
//   - Only a fault ([Throttle]) throttles requests.
//   - The server never has outstanding requests. Therefore a sequential create above the largest
//     int32 fails, where a real server under load may wrap around.
//   - The order of children is unspecified, but the same history always gives the same order.
//
// The server has limits that a real server does not have, because it must not take down the program
// that it is part of. [Config.MaxAnswer] limits one answer. [Config.MaxQueued] and
// [Config.MaxQueuedTotal] limit the bytes that are queued for clients that do not read. The server
// closes a connection over a limit; its session lives until its timeout. A queued watch event takes
// 32 bytes and its path, until the client has read the event or the connection has ended. A client
// that does not read delays no other client. [Config.MaxConns] limits the connections, and
// [Config.OpsBytes] limits the memory of [Server.Ops]. [Config.Logf] logs the connections that a
// limit closes or refuses.
//
// # Ensembles
//
// [NewEnsemble] gives a Server several endpoints. Clients connect to an [Endpoint], and each
// endpoint can be stopped, frozen, cut off or made to lag alone. An endpoint leads, follows, or
// looks for a leader:
//
//	          election, or a reachable leader
//	looking  --------------------------------------->  follower or leader
//	   ^                                                        |
//	   |  a follower: after SyncLimit ticks without its leader  | CutLink, CutFromLeader,
//	   |  a leader: when it counts too few followers,           | Depose, ResetEnd, Freeze
//	   |  once a tick                                           v
//	   +------------------------------------------------  has not noticed
//
// An endpoint that looks for a leader accepts a connection and closes it at its ConnectRequest, or
// serves readers with [Config.ReadOnlyMode]. An endpoint that has not noticed the loss answers from
// the tree as of the loss.
//
// While a majority of the endpoints can talk to each other, there is a leader that commits. Without
// such a leader, no write commits and no session expires. A new leader begins an epoch, the upper
// half of the zxid, and gives each session the full timeout with which the session was created.
// Among the endpoints that a majority can follow, the endpoint with the latest transaction is
// elected, and among equals the endpoint with the greatest number. A session moves between
// endpoints with its client. The endpoint that the client has left still answers reads of the
// session, and closes the old connection at its first write.
//
// Only the leader expires sessions. The leader learns immediately of the requests of its own
// clients, of new sessions, and of clients that reconnect to any endpoint, with the timeout that
// they negotiated. A follower records a touch for each session that it hears of, by a ping, a read
// or a forwarded request. The follower reports its touches when the leader pings, each half tick
// since the leader's election. A follower that is cut off loses the touches since its last report.
// [Server.LoseTouches] loses more touches, like a race in real servers. The commit of a new session
// also leaves a touch at each follower.
//
// A leader that has lost its quorum and has not noticed is deposed: [Server.Depose] describes its
// answers. [Server.SetThawOrder] chooses the first action of a leader that resumes after a freeze.
// Tests compare the client's view of moves, cut-offs, epochs, touches, deposed leaders and paused
// leaders with real servers.
//
// Because all endpoints show one tree, an answered write is never lost, and an endpoint catches up
// instantly. The links between endpoints work or are cut, and have no latency. If an endpoint or
// its leader is cut off before a write, the write gets no answer and is never carried out. A real
// ensemble may carry out such a write later, when it elects a server that has seen the proposal:
// [CutAfterForward] stages that case. A follower that returns to a deposed leader restores the
// quorum; here a new epoch begins then. There are no observers. With [Config.ReadOnlyMode] an
// endpoint without a quorum serves clients that accept a read-only server. Sessions of these
// clients are local to the endpoint and do not expire, but the endpoint closes a connection that is
// silent for longer than its timeout.
//
// # Configuration and data
//
// [ReadConfig] turns a real server's zoo.cfg into a Config. With [Config.DataFile] the tree, the
// sessions and the zxid are kept in a file, and the next server continues from this file: every
// answer that a client has received survives kill -9. [Server.Snapshot] writes the same data to any
// writer, and [Server.Restore] reads the data into a new server. The file takes the size of the
// paths and the data, about 100 bytes per znode, and the changes since the last snapshot: up to 16
// MiB, or twice the size of the snapshot if that is more. Clients wait while the server rewrites
// the file. The file contains neither watches nor the state of faults.
//
// # Size and speed
//
// A znode takes its data and about 200 bytes of memory, up to 300 bytes if it is ephemeral. Reads
// allocate nothing. The server answers more than 100,000 requests a second to clients that pipeline
// their requests.
//
// # Time
//
// A Server that is created inside a [testing/synctest] bubble works inside the bubble, with its
// connections. The server has no goroutine without a connection or a listener, and no timer without
// a connection, a session or a znode to reap. Its goroutines block durably. An hour of pings takes
// milliseconds in a bubble. Listen is the exception, because Accept does not block durably.
// [Server.Close] returns when all goroutines have ended.
//
// # Faults
//
// [Server.Inject] makes one or more requests, replies or watch events fail. A [Fault] selects them
// by session, endpoint, operation, path, count, and any predicate. It strikes before the request is
// carried out, after that, before the answer, or when an event is sent. Faults at one moment strike
// in the order in which they were injected.
//
// The other methods imitate networks, operators and kernels. [Server.Partition],
// [Server.Disconnect], [Server.ExpireSession], [Server.Lag], [Server.CutFromLeader],
// [Server.Freeze], [Server.Restart], [Server.HangHandshake] and more affect a session or the
// server. The methods of [Endpoint], [Server.CutLink], [Server.ResetEnd] and [Server.Depose] affect
// the servers of an ensemble.
//
// [Server.Ops] returns the requests that the server has received, in order, with their results and
// the faults that struck them; an [Op] prints as one line. [Server.Dump] prints the tree.
package zkserver
