package session

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// DeleteSeen looks at a znode and deletes it at the version that judge returns. judge gets the results
// of Exists. If judge returns an error, nothing is deleted, and DeleteSeen returns that error. Use
// DeleteSeen for a znode whose name does not say whose it is: Delete repeats its request without another
// look, and may strike a znode that another client has created at the path with the same version.
//
// The deletion is sent once behind each look, over the connection of the look. If the server refuses it
// for a reason that may pass, or another connection has come into use, DeleteSeen looks again and calls
// judge again. If the connection breaks before the answer, the error is ErrConnectionLost, and the
// deletion may or may not have happened; ctx and the end of the session are as in Delete.
func (s *Session) DeleteSeen(ctx context.Context, path string, judge func(exists bool, stat *zk.Stat, err error) (version int32, refusal error)) (err error) {
	var f *failures
	defer func() { err = f.end(ctx, err) }()
	for round := 1; ; round++ {
		conn := s.Connection() // before the look: 0 does not say over which connection the look went
		version, err := judge(s.Exists(ctx, path))
		if err != nil {
			return err
		}
		if err = errOtherConnection; conn != 0 {
			c, failed := s.requests.once(ctx, s.m.records.versioned(wire.OpDelete, path, version), conn)
			err = opError("delete", path, s.m.failure(c, failed))
		}
		if ClassOf(err) != ClassTransient {
			return err
		}
		f = f.orNew(ctx, s.m, "delete", path)
		f.note(err)
		if err := s.requests.backoff(ctx, round); err != nil {
			return opError("delete", path, err)
		}
	}
}
