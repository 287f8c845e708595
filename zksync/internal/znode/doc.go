// Package znode has the code that all rooms of zksync share: paths of znodes, sequence
// numbers, GUIDs, directories, reads of many children, and the errors of a loss.
//
// It may import session and nothing else of this module.
//
// The words of this package:
//
//   - A directory is a znode whose children belong to one primitive.
//   - A sequence number is the number that the server appends to the name of a
//     sequential znode.
//   - A loss is the end of a hold that was not released: its session ended, or another
//     client removed its znode.
package znode
