package zksync

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// removeAll removes znodes of ours, all at once, and waits for the answer, at
// most until the session's Deadline; from then on it goes on in the background.
// It fails if a znode or the session is found to have been ended by others, which
// may have been before.
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
			discardAll(s, paths) // those that are left
		}
		return ErrRemoved
	case session.ClassNoAuth, session.ClassNotEmpty, session.ClassFinal:
		return err
	}
	if s.Err() == nil {
		for _, gone := range discardAll(s, paths) {
			select {
			case <-gone:
			case <-ctx.Done():
			}
		}
	}
	if err := s.Err(); err != nil && ctx.Err() == nil {
		// The session has ended before it had to, by somebody's hand: perhaps
		// before the release.
		return lossOf(err)
	}
	// Whether or not that has reached the server, the hold was good until the
	// release began.
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
