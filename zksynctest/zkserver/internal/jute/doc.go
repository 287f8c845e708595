// package jute has the records of ZooKeeper's wire protocol, their codec, and the tables of
// operation codes, error codes and event types. It imports the standard library only.
//
// A frame is a length and the bytes of one request or reply. A record is a sequence of
// primitives: integers, buffers and strings with their length, and vectors with their
// count. A [Decoder] reads primitives; a [Request] is any decoded request. The Append
// functions write replies, without allocating if the slice has room.
package jute
