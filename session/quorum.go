package session

import (
	"context"
)

// SyncQuorum waits until the server that we are connected to has applied every
// transaction that was committed when SyncQuorum was called, and proves that a
// quorum of the ensemble took part: every later read of this Session shows the
// state as of the call, or a newer one. Sync does not prove that. A leader that was
// deposed and has not noticed answers a sync, but commits nothing.
//
// SyncQuorum commits a transaction that changes nothing, so it costs the ensemble
// as much as a write. path is any path, and its znode need neither exist nor be
// readable. SyncQuorum is repeated over lost connections; it fails when ctx or the
// session ends.
func (s *Session) SyncQuorum(ctx context.Context, path string) error {
	if err := checkPath(path, false); err != nil {
		return opError("sync", path, err)
	}
	c, _, err := s.repeat(ctx, s.quorumRequest(path))
	if err == nil {
		err = c.quorum()
	}
	return opError("sync", path, err)
}

// quorumRequest is a transaction of a single check. The leader proposes a
// transaction whose check fails as well, as an error transaction, and the server
// that we are connected to answers it after it has applied all transactions before
// it (PrepRequestProcessor, ProposalRequestProcessor, CommitProcessor). A
// transaction without operations would not even be checked for its session.
func (s *Session) quorumRequest(path string) *request {
	full := s.m.full(path)
	return &request{op: opMulti, path: full, size: 2*multiHeaderSize + stringSize(full) + intSize, fill: func(b []byte) []byte {
		return appendMultiEnd(appendInt(appendString(appendMultiHeader(b, opCheck), full), -1))
	}}
}

// quorum returns nil if the answer to a quorumRequest proves a commit: if there is
// a result, whether or not the check has passed. A server that refuses the request
// before it reaches the leader answers without a result.
func (c *call) quorum() error {
	if err := c.failure(); err != nil {
		return err
	}
	switch classOfCall(c) {
	case ClassLost, ClassTransient, ClassConnectionLost:
		return errorOfCode(c.multiCode())
	}
	if len(c.body) < multiHeaderSize {
		return errMalformed
	}
	return nil
}
