package line

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-zksync/toolkit/session"
)

// A leftover is the contender of a LocalQueue whose linger has ended last. No call waits for the
// deletion of its znode, so a refusal is kept for the next call.
type leftover struct {
	mu   sync.Mutex
	s    *session.Session
	path string
	gone <-chan error // of Session.Discard; nil if no contender has lingered
}

// discard deletes a contender in the background, and keeps the outcome.
func (l *leftover) discard(c *contender) {
	gone := c.discard()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.s, l.path, l.gone = c.s, c.path, gone
}

// refusal returns once that the server has refused to delete the znode. It returns nil if the
// znode does not exist any more.
func (l *leftover) refusal(ctx context.Context) error {
	l.mu.Lock()
	s, path := l.s, l.path
	var refused error
	select {
	case refused = <-l.gone:
		l.gone = nil
	default: // the deletion is under way, or no contender has lingered
	}
	l.mu.Unlock()
	if refused == nil {
		return nil
	}
	// The janitor goes on after a refusal, and another client may delete the znode, too. A session that has
	// ended has taken the znode with it, and fails the request.
	if ok, _, _ := s.Exists(ctx, path); !ok {
		return nil
	}
	return fmt.Errorf("behind the znode %s of an earlier hold of this value, which could not be removed at the end of its linger: %w", path, refused)
}
