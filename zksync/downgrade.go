package zksync

import (
	"context"

	"github.com/go-zksync/toolkit/zksync/internal/line"
)

// Downgrade turns the write lock that this value holds into a read lock, and no
// writer gets the lock in between. Waiting readers get the lock too; waiting writers
// wait until RUnlock. Call RUnlock in place of Unlock from then on.
//
// It fails with ErrNotHeld if this value holds no write lock. After any other error
// nothing is held, and no Unlock or RUnlock is needed: the lock had been lost
// (ErrLost), or Downgrade released it because ctx ended before the outcome was known,
// or because the server refused the request.
func (rw *RWMutex) Downgrade(ctx context.Context) error {
	_, err := rw.downgrade(ctx)
	return opError("downgrade", rw.w.path, err)
}

// DowngradeContext is Downgrade with a context like the one of RLockContext. Its
// token is the token of the write lock. The context of the write lock ends with
// ErrReleased.
func (rw *RWMutex) DowngradeContext(ctx context.Context) (context.Context, error) {
	st, err := rw.downgrade(ctx)
	if err != nil {
		return nil, opError("downgrade", rw.w.path, err)
	}
	held, _ := rw.r.Context(ctx, st)
	return held, nil
}

func (rw *RWMutex) downgrade(ctx context.Context) (*line.Grant, error) {
	rw.w.mu.Lock()
	h := rw.w.held
	rw.w.held = nil
	rw.w.mu.Unlock()
	if h == nil {
		return nil, ErrNotHeld
	}
	return rw.r.Downgrade(ctx, &rw.w.in, h)
}
