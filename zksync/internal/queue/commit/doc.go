// Package commit carries out transactions exactly once, many in one request.
//
// It may import session and znode, and nothing else of this module.
//
// The words of this package:
//
//   - A transaction (Tx) is a list of operations that happen together or not at all. An
//     Entry is a transaction under way.
//   - The marker is a znode of the Committer. Every request raises its version by one,
//     and requires the version that the request before has left.
//   - A gate decides how many entries go into the next request.
//   - A fence is a write to the marker that stops every request sent before.
//   - A chain is a list of entries that ends at the first failure.
//
// The states of an entry:
//
//	queued --ctx ended, WithdrawAfter, Close, chain broken, data too old--> finished: not happened
//	queued --prepare--> sent
//	sent --answer: done--> finished: happened
//	sent --operation of another entry refused, marker or gate refused--> queued
//	sent --operation of the entry refused--> queued, behind a repair or alone; or finished
//	sent --no answer--> repeated, or fenced if it relies on a read
//	repeated --answer: done--> finished: happened
//	repeated --any refusal, or no session--> fenced
//	fenced --> finished: happened, stale or unknown; or queued
//
// While an entry is sent, its caller may leave with ErrUnknown, WithdrawAfter may end and
// Close may begin. Such an entry is finished instead of queued again.
package commit
