package session

import (
	"context"
	"fmt"
)

// checkChroot fails if the chroot does not exist, or creates it if WithCreateChroot
// says so. A chroot that is removed later is created again like any directory: the
// name has proven right.
func (m *Manager) checkChroot(ctx context.Context) error {
	if m.records.chroot == "" {
		return nil
	}
	return m.Retry(ctx, func(s *Session) error {
		exists, _, err := s.Exists(ctx, "/")
		switch {
		case ClassOf(err) == ClassNoAuth:
			return nil // it exists, and may yet let us create or read below
		case err != nil || exists:
			return err
		case m.cfg.makeChroot:
			return s.MakeDir(ctx, "/")
		}
		return fmt.Errorf("%w: %s (correct the connection string, or create the chroot by session.WithCreateChroot)", ErrNoChroot, m.records.chroot)
	})
}
