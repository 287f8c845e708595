// Package tree has the data tree of the server: its znodes with their ACLs, the watches
// that clients leave, the accounts of quotas, and the transactions. It imports jute and the
// standard library.
//
// A [Store] is a [Tree] and the sequence of its transactions. A [Txn] is one transaction: each
// of its writes checks everything before it changes anything. A transaction leaves changes,
// which fire watches, and steps, which are written to a data file. [Watches] are the watches
// on one server of an ensemble, and a [Client] is a connection as the tree knows it. Nothing
// in this package locks: the server's mutex guards all of it.
package tree
