package watch

import (
	"context"
	"errors"
	"fmt"
)

// ErrStopped is why a stream has ended whose loop over All was left.
var ErrStopped = errors.New("watch: the loop was left")

// cancelled is why something ended with ctx: it matches both ctx.Err() and the
// cause of the cancellation.
func cancelled(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// ended says what has ended, and why.
func ended(what, path string, why error) error {
	return fmt.Errorf("watch %s %s: %w", what, path, why)
}
