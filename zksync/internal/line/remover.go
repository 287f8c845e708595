package line

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A contenderRemover removes the znode of a contender.
type contenderRemover interface {
	// remove waits for the answer, at most until the session's Deadline; from then on
	// the removal continues in the background. It fails like removeAll.
	remove(s *session.Session, path string) error
	// discard removes the znode in the background. The channel is closed when the
	// znode is gone or the session is over.
	discard(s *session.Session, path string) <-chan struct{}
}

// uniqueName removes a znode whose name no other client can have: its name contains a
// GUID or a sequence number.
type uniqueName struct{}

func (uniqueName) remove(s *session.Session, path string) error {
	return removeAll(s, []string{path})
}

func (uniqueName) discard(s *session.Session, path string) <-chan struct{} { return s.Discard(path) }

// removeAll deletes znodes of ours in one transaction and waits for the answer, at most
// until the session's Deadline. From then on the deletion continues in the background.
// It fails if another client has deleted a znode or ended the session, perhaps before
// the call.
func removeAll(s *session.Session, paths []string) error {
	ctx, cancel := context.WithDeadline(context.Background(), s.Deadline())
	defer cancel()
	var err error
	if len(paths) == 1 {
		err = s.Delete(ctx, paths[0], -1)
	} else {
		ops := make([]any, len(paths))
		for i, path := range paths {
			ops[i] = &zk.DeleteRequest{Path: path, Version: -1}
		}
		_, err = s.Multi(ctx, ops...)
	}
	switch session.ClassOf(err) {
	case session.ClassOK:
		return nil
	case session.ClassNoNode:
		if len(paths) > 1 {
			discardAll(s, paths) // the remaining paths
		}
		return session.ErrRemoved
	case session.ClassNoAuth, session.ClassNotEmpty, session.ClassFinal:
		return err
	}
	return awaitGone(ctx, s, discardAll(s, paths)...)
}

// awaitGone waits, bounded by ctx, until the janitor has deleted znodes of ours. It fails
// if another client has ended the session.
func awaitGone(ctx context.Context, s *session.Session, gone ...<-chan struct{}) error {
	for _, g := range gone {
		select {
		case <-g:
		case <-ctx.Done():
		}
	}
	if err := s.Err(); err != nil && ctx.Err() == nil {
		// The session has ended before its Deadline, perhaps before the release.
		return znode.LossOf(err)
	}
	// The hold was good until the release began, even if no request has reached the
	// server.
	return nil
}

// discardAll removes znodes in the background.
func discardAll(s *session.Session, paths []string) []<-chan struct{} {
	if s.Err() != nil {
		return nil
	}
	gone := make([]<-chan struct{}, len(paths))
	for i, path := range paths {
		gone[i] = s.Discard(path)
	}
	return gone
}
