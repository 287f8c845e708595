package queue

import (
	"context"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

const (
	// leastTrip stands for a round trip that is too short to tell consumers apart.
	leastTrip = 200 * time.Microsecond

	// maxPause limits the pause of a consumer that was slower than others.
	maxPause = 100 * time.Millisecond

	// maxTurn limits the wait for the turn of another consumer, which needs three round trips.
	maxTurn = 200 * time.Millisecond
)

// waitUntil waits until notified is closed, or until a time, if it is not zero.
func waitUntil(ctx context.Context, s *session.Session, notified <-chan struct{}, until time.Time) error {
	var due <-chan time.Time
	if !until.IsZero() {
		d := time.Until(until)
		if d <= 0 {
			// A timer of zero has brought the runtime down in a bubble of synctest.
			return nil
		}
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-notified:
		return nil
	case <-due:
		return nil
	case <-s.Done():
		return znode.LossOf(s.Err())
	case <-ctx.Done():
		return session.Cancelled(ctx)
	}
}
