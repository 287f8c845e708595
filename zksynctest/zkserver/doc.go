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
// [Config.DataFile], and hash of no digests. Requests are not throttled. The server never has requests outstanding, so that a sequential
// create beyond the greatest int32 fails where a real server under load may wrap
// around. Children come in an order that nobody should rely on, but in the same one
// for the same history.
//
// What waits for a client that does not read has no bound, as in a real server: a
// watch event takes 32 bytes and its path. It is gone when the client has read it,
// or when its connection has ended, of which its session's end is one way. Nobody
// else waits for that client.
//
// # Ensembles
//
// [NewEnsemble] gives a Server several endpoints, each an [Endpoint] that clients
// connect to and that is stopped, frozen, cut off or made to lag by itself:
//
//	                 Stop, or the end of its doubt
//	  looking  <------------------------------------  member
//	(accepts and closes;   ---------------------->  (leads or follows)
//	 may serve readers)    a leader it can reach           |  ^
//	                                          CutFromLeader|  |
//	                                                       v  |Rejoin closes its
//	                                                    doubt  connections first
//	                          (answers pings and reads from the tree as it was)
//
// While a majority of them can talk to each other there is a leader; without one
// nothing is written, no session expires, and connections are closed. A new leader
// begins an epoch, the upper half of the zxid, and gives all sessions their full
// time. Of those that a majority can follow the one that has seen most is elected,
// and then the one with the greatest number. Sessions move between endpoints with
// their clients; the endpoint that was left goes on answering reads, and closes at
// the first write. Followers tell their leader of the sessions they have heard of
// each half tick, or as soon as they go on if they were frozen then, so that what
// they heard since is lost when they are cut off. What clients see of moves, cut-offs
// and epochs is compared with real servers.
//
// It is one tree that all endpoints show, and no consensus: nothing that was
// answered is ever lost, and an endpoint catches up in an instant; the links between
// endpoints work or are cut, and have no latency. A write that gets no answer because
// an endpoint or its leader was cut off was never done. With real servers it can come
// to be done after all, when one that had seen the proposal is elected: AfterCommit, a
// [Call] that cuts the endpoint off, and a [Drop] behind it, stage that. With [Config.ReadOnlyMode] an endpoint without a quorum
// serves clients that are content with reading. Their sessions are its own and do not
// expire, but connections that are silent for longer than their timeout are closed.
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
// [Server.HangHandshake] and more; those of [Endpoint] and [Server.CutLink] to the
// servers of an ensemble. [Server.Ops] tells what the server was asked, in order,
// with what became of it and which faults struck; an [Op] prints as a line.
// [Server.Dump] shows what the tree looks like.
package zkserver
