// Package line has the engine of Mutex, RWMutex, Semaphore and Election: contenders
// that wait in line, and the holds of the first ones.
//
// It may import session and znode, and nothing else of this module.
//
// The words of this package:
//
//   - A line is a directory whose children are contenders. A contender is an ephemeral
//     sequential znode. A Rule says which contenders block which others.
//   - A local queue has the goroutines of this process that share one value. They share
//     one contender at a time, and hand it on.
//   - A grant is the right to hold: one or more znodes under one lease. A hold is one
//     goroutine's use of a grant. The holds in a Pool share grants; any other hold has a
//     grant of its own.
//   - A lease is the znode of one unit of a semaphore that is held. A session.Lease is
//     the right to hold by a session.
//   - A contender waits, is granted, lingers, and is gone; see contenderState. It lingers
//     while its last holder has released it and no goroutine has acquired it again. A
//     contention watch tells whether other contenders joined.
//   - A race is an election by one ephemeral znode, without a line. A slot is the right
//     of one value of this process to create that znode.
package line
