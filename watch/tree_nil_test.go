package watch_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
)

// WaitSynced of a Tree of a nil Manager returns the error of the nil Manager, also if its ctx has ended (Tree).
func TestTreeOfANilManager(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 200 {
		if err := watch.Tree(t.Context(), nil, "/a").WaitSynced(ctx); !errors.Is(err, session.ErrInvalidOption) {
			t.Fatalf("WaitSynced: %v, want ErrInvalidOption", err)
		}
	}
}
