package zksync

import (
	"context"

	"github.com/go-zksync/toolkit/zksync/internal/line"
)

// Token returns the fencing token that the context of a hold or of leadership
// carries: the czxid of the znode of the hold. It is greater than the token of every
// earlier hold on the same path, except that goroutines of one process that take
// turns at one znode share it. The tokens of an RWMutex order each writer among all
// earlier and later holders; readers that overlap may have any order. The tokens of a
// Semaphore identify a hold and fence nothing. ok is false for any other context.
//
// A process that was paused may act on a hold that it lost meanwhile. No library can
// prevent that. A resource is safe if it remembers the greatest token that it has
// seen and refuses smaller ones:
//
//	if token < r.newest { return errStale }
//	r.newest = token
func Token(ctx context.Context) (token int64, ok bool) { return line.TokenOf(ctx) }
