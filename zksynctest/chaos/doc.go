// Package chaos has no code but its test: an ensemble of three Apache ZooKeeper
// processes and several client processes, all of which are killed, paused and cut
// off while they work, whose leaders are deposed without noticing and whose servers are
// overloaded, and what may never happen meanwhile.
//
//	make chaos CHAOS=10m
//
// Each client writes down its own view, by its own clock: that it got a lock, with
// which token, that it still has the lock, that it put, received and acknowledged a
// message. Afterwards the notes of all clients are compared.
package chaos
