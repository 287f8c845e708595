package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
)

// Grant returns when its lease is ended, and does not wait for a proof that the session no longer has a reason to
// make. To see this test fail, remove the notification from Lease.change.
func TestGrantOfALeaseThatIsEnded(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		time.Sleep(timeout) // an idle session that never held anything has lapsed
		l := s.Lease()
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- l.Grant(ctx) }()
		synctest.Wait()
		l.End()
		within(t, 0, "Grant behind End", func() {
			if err := <-done; err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Grant returned %v, want an error that the lease has ended", err)
			}
		})
	})
}
