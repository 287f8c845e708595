// Package rendezvous has the participants of a double barrier.
//
// It may import session and znode, and nothing else of this module.
//
// The words of this package:
//
//   - A participant is one value of DoubleBarrier under one session. Its child is an
//     ephemeral in the directory of the barrier.
//   - ready is the znode that exists while the barrier is open. It is persistent and no
//     participant's child.
//   - A round begins when ready is created, and ends when ready is deleted. A
//     participant is in the round of the first ready that is newer than its child.
//   - A strange child is a child of the directory that belongs to no participant.
//   - A touch is a write of an empty value to the directory. Every transaction that
//     changes the barrier contains a touch, so the version of the directory tells
//     rounds and decisions of different times apart, until the directory is deleted: a new
//     one counts from 0 again. ready is created and deleted by transactions that fail if
//     the version has changed since the directory was seen full or empty.
package rendezvous
