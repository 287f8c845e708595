// Package journal keeps the state of a server in a data file: the file and its lock, the
// changes that are added to it, its snapshots, and its recovery. It imports tree, jute and
// the standard library.
//
// A [State] is the part of a server that outlives it. A file is a snapshot, which is a whole
// state, and the changes after the snapshot. A frame is a part of a file with a checksum: a
// part of a snapshot, or one change. A batch is the frames of one write. A write is torn if
// a crash has cut it short. [Files] is the layer below: the operating system, or a disk of a
// test that loses power.
package journal
