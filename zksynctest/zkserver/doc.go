// Package zkserver is a ZooKeeper server that runs inside a Go program: for tests,
// for examples, and for trying things out where no ensemble is at hand. It speaks
// the protocol of Apache ZooKeeper 3.9 to any client, over TCP with
// [Server.Listen] and [Server.Serve], or in memory with [Server.Dial].
//
// # What is like the real server
//
// Results, error codes and the order in which they are checked; zxids, of which a
// failed write takes one too; the fields of a Stat; sequence numbers with their
// overflow; multi; one-shot watches, whose events come before the reply to what
// caused them; ACLs with the schemes world, auth, digest, ip and the super user;
// sessions, which expire in buckets at multiples of the tick: after their timeout
// and at most a tick later.
//
// # What is not
//
// There is one server, without an ensemble or a log: the tree lives as long as the
// Server, over [Server.Stop] and [Server.Start]. Quotas, SASL, reconfiguration,
// persistent watches, the reaping of containers and TTL nodes and the four-letter
// words are missing. The server never has requests outstanding, so that a
// sequential create beyond the greatest int32 fails where a real server under load
// may wrap around. Children come in an order that nobody should rely on, but in
// the same one for the same history.
//
// # Time
//
// A Server and its connections work inside a [testing/synctest] bubble if it was
// made there: it has no goroutine without a connection or a listener, no timer
// without a connection or a session, and whatever waits, waits durably. An hour of pings takes
// milliseconds then. Listen is the exception, because Accept is not durable.
// [Server.Close] returns when all goroutines have.
//
// # Faults
//
// [Server.Inject] makes one request, reply or watch event go wrong, picked by
// session, operation, path and count. The other methods do to a session or to the
// server what networks, operators and kernels do: [Server.Partition],
// [Server.Disconnect], [Server.ExpireSession], [Server.Lag],
// [Server.CutFromLeader], [Server.Freeze], [Server.Restart],
// [Server.HangHandshake] and more. [Server.Ops] tells what the server was asked,
// in order, and [Server.Dump] what its tree looks like.
package zkserver
