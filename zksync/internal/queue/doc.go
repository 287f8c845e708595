// Package queue is the consuming side of the queues: claims, delivery and Take.
//
// It may import session, znode and commit, and nothing else of this module.
//
// The words of this package:
//
//   - A partition is a directory of messages.
//   - A claim keeps a message from other consumers. It is a name in a ledger.
//   - A ledger is an ephemeral znode with the claims of one consumer.
//   - The order znode puts all claims in order by its version. Its data, the claim table,
//     tells which messages are free.
//   - To settle a message is to remove it, or to put it elsewhere, and to end its claim in
//     the same transaction. To give it back is to end the claim alone.
//   - Recovery makes the messages free that a dead consumer had claimed.
//   - A view is the knowledge of one consumer about the queue, through one session.
package queue
