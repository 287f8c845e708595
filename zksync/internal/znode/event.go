package znode

import (
	"context"

	"github.com/go-zksync/toolkit/session"
)

// AwaitEvent waits until a watch fires, and stops the watch. It fails when ctx or the
// session ends.
func AwaitEvent(ctx context.Context, s *session.Session, w *session.Watch) error {
	defer w.Stop()
	select {
	case <-w.Events():
		return nil
	case <-s.Done():
		return s.Err()
	case <-ctx.Done():
		return session.Cancelled(ctx)
	}
}
