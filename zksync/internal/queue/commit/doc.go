// Package commit carries out transactions exactly once, many in one request.
//
// It may import session and znode, and nothing else of this module.
//
// The words of this package:
//
//   - A transaction (Tx) is a list of operations that happen together or not at all. An
//     Entry is a transaction under way.
//   - A batch is a list of entries that are sent together.
//   - The marker is a znode of the Committer. Every request raises its version by one,
//     and requires the version that the request before has left.
//   - A gate decides how many entries go into the next request.
//   - A fence is a write to the marker that stops every request sent before.
//   - An epoch is the time in which a Committer uses one marker.
//   - A chain is a list of entries that ends at the first failure.
package commit
