// Package wire carries the requests of a session over one connection to a ZooKeeper
// server: the frames, the encoding of records (jute), the matching of answers to
// requests, and the authentication by DIGEST-MD5.
//
// Only package session imports it. It imports go-zookeeper for the types Stat and ACL,
// and the standard library. It knows neither Session nor Manager: a [Conn] reports
// everything that arrives to its [Handler].
//
// The words of this package:
//
//   - A [Request] is an operation and its encoded record. It can be
//     sent several times.
//   - A [Call] is a Request that was sent on one connection, with its outcome.
//   - A frame is a message with its length in front. An answer is the frame that answers
//     one request; an event is a frame that the server sends because of a watch.
//   - An xid is the number by which an answer names its request.
//   - Guilt is how much the answer to a request has contributed to the end of its
//     connection.
package wire
