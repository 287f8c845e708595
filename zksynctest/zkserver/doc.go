// Package zkserver is a ZooKeeper server that runs inside a Go program: for tests,
// for examples, and for trying things out where no ensemble is at hand. It speaks
// the protocol of Apache ZooKeeper 3.9 to any client, over TCP with
// [Server.Listen] and [Server.Serve], or in memory with [Server.Dial].
//
// # What is like the real server
//
// Results, error codes and the order in which they are checked; zxids, of which a
// failed write takes one too; the fields of a Stat; sequence numbers with their
// overflow; multi and multiRead; one-shot, persistent and recursive watches, which
// coexist on a path, and whose events come before the reply to what caused them
// and are kept from those who may not read; ACLs with the schemes world, auth,
// digest, ip and the super user; containers and TTL nodes and their reaping; the
// accounts of quotas; the four-letter words, of which srvr alone is answered unless
// [Config.FourLetterWords] says more; limits for frames, connections and
// handshakes; sessions, which expire in buckets at multiples of the tick: after
// their timeout and at most a tick later. Where 3.8.0 does otherwise,
// [Config.Compat38] does as that.
//
// # What is not
//
// There is no consensus: the endpoints of an ensemble share one tree, which lives as
// long as the Server, over [Server.Stop] and [Server.Start], and longer with
// [Config.DataFile]. SASL has no mechanism, and is answered as by a server that none
// is configured for; reconfig is refused. Hard limits of quotas count only with
// [Config.EnforceQuota], as is the real server's default, and nothing tells of soft
// ones, because the server tells its tale nowhere. Of what mntr and cons count,
// outstanding requests are always 0, and what only real servers have is left out;
// envi knows of no Java, dirs and conf of no directory but that of
// [Config.DataFile], and hash of no digests. Requests are throttled only by a fault
// ([Throttle]). The server never has requests outstanding, so that a sequential
// create beyond the greatest int32 fails where a real server under load may wrap
// around. Children come in an order that nobody should rely on, but in the same one
// for the same history.
//
// The server has limits that a real server does not have, because it must not end the
// program that it is part of: [Config.MaxAnswer] for one answer, [Config.MaxQueued] and
// [Config.MaxQueuedTotal] for what waits for clients that do not read. A connection over
// a limit is closed, and its session goes on until its timeout. A watch event that waits
// takes 32 bytes and its path. It is gone when the client has read it, or when its
// connection has ended, of which its session's end is one way. Nobody else waits for
// that client. [Config.MaxConns] limits connections, and [Config.OpsBytes] what
// [Server.Ops] remembers. [Config.Logf] is told what the limits did.
//
// # Ensembles
//
// [NewEnsemble] gives a Server several endpoints, each an [Endpoint] that clients
// connect to and that is stopped, frozen, cut off or made to lag by itself. Each
// endpoint leads, follows, or looks for a leader:
//
//	          election, or a leader that it can reach
//	looking  --------------------------------------->  follower or leader
//	   ^                                                        |
//	   |  a follower: at the end of its patience                | CutLink, CutFromLeader,
//	   |  a leader: when it counts too few followers,           | Depose, ResetEnd, Freeze
//	   |  which it does once a tick                             v
//	   +------------------------------------------------  has not noticed
//
// An endpoint that looks for a leader accepts connections and closes them at their
// ConnectRequest, or serves readers with [Config.ReadOnlyMode]. An endpoint that has
// not noticed answers from the tree as it was.
//
// While a majority of the endpoints can talk to each other there is a leader that
// commits. Without one nothing is written and no session expires. A new leader begins
// an epoch, the upper half of the zxid, and gives all sessions the full timeout with
// which they were created. Among the endpoints that a majority can follow, the
// endpoint with the latest transaction is elected, and among equals the endpoint with
// the greatest number. Sessions move between endpoints with their clients; the endpoint that was
// left goes on answering reads, and closes at the first write.
//
// Only the leader knows when sessions expire. It hears at once of the requests of its
// own clients, of new sessions, and of clients that reconnect anywhere, with the
// timeout that was negotiated then. A follower notes what it hears of sessions, pings,
// reads and requests that it forwards alike, and reports that when its leader pings,
// each half tick since the leader's election: what it noted after its last report is
// lost when it is cut off. [Server.LoseTouches] loses more, as a race in real servers
// does. The commit of a new session leaves a note at each follower, too.
//
// A leader that has lost its quorum and has not noticed is deposed: see
// [Server.Depose] for what it goes on answering. [Server.SetThawOrder] chooses what a
// leader does first when it goes on after a freeze. What clients see of moves,
// cut-offs, epochs, touches, deposed and paused leaders is compared with real servers.
//
// It is one tree that all endpoints show, and no consensus: nothing that was answered
// is ever lost, and an endpoint catches up in an instant; the links between endpoints
// work or are cut, and have no latency. A write that gets no answer because an
// endpoint or its leader was cut off before was never done. With real servers it can
// come to be done after all, when a server that had seen the proposal is elected:
// [CutAfterForward] stages that. A follower that comes back to a deposed leader, which
// then has a quorum again, begins a new epoch here. There are no observers. With
// [Config.ReadOnlyMode] an endpoint without a quorum serves clients that are content
// with reading. Their sessions are its own and do not expire, but connections that are
// silent for longer than their timeout are closed.
//
// # Configuration and data
//
// [ReadConfig] makes a Config of a real server's zoo.cfg. With [Config.DataFile] the
// tree, the sessions and the zxid are in a file, from which the next server goes on:
// whatever a client was told outlives kill -9. [Server.Snapshot] writes the same to
// any writer, and [Server.Restore] reads it into a new server. The file of a tree
// takes about as much room as its data and paths and 100 bytes a znode, and up to
// 16 MiB, or twice as much again, of changes; while it is written anew, clients
// wait. Neither watches nor what faults have done are in it.
//
// # Size and speed
//
// A znode takes about 200 bytes of memory and its data, up to 300 if it is
// ephemeral. Reads allocate nothing. More than 100,000 requests a second are
// answered to clients that do not wait for each.
//
// # Time
//
// A Server and its connections work inside a [testing/synctest] bubble if it was
// made there: it has no goroutine without a connection or a listener, no timer
// without a connection, a session or a znode that is going to be reaped, and
// whatever waits, waits durably. An hour of pings takes milliseconds then. Listen is
// the exception, because Accept is not durable. [Server.Close] returns when all
// goroutines have.
//
// # Faults
//
// [Server.Inject] makes one request, reply or watch event go wrong, or many, picked
// by session, endpoint, operation, path, count, and any predicate: before it is
// carried out, after that, before it is answered, or when an event is sent. Faults
// at one moment strike in the order in which they were injected. The other methods
// do to a session or to the server what networks, operators and kernels do:
// [Server.Partition], [Server.Disconnect], [Server.ExpireSession], [Server.Lag],
// [Server.CutFromLeader], [Server.Freeze], [Server.Restart],
// [Server.HangHandshake] and more; those of [Endpoint], [Server.CutLink],
// [Server.ResetEnd] and [Server.Depose] to the servers of an ensemble. [Server.Ops] tells what the server was asked, in order,
// with what became of it and which faults struck; an [Op] prints as a line.
// [Server.Dump] shows what the tree looks like.
package zkserver
