// Package inspect recognises the primitive that uses a path, and the client libraries of
// its participants, by the names and the data of the znodes.
//
// It may import session, line, rendezvous and znode, and nothing else of this module.
//
// The words of this package:
//
//   - A kind is the primitive that uses a path, of zksync or of another client.
//   - A participant is a contender, a member of a group, a participant of a double
//     barrier, or a consumer of a queue.
package inspect
