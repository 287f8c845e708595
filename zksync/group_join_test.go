package zksync_test

import (
	"errors"
	"testing"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// The ErrIDTaken of a Join wraps a conflict also if the member in the way leaves meanwhile: the reason for the absence that follows
// is no conflict. Breaks if Group.join takes every reason behind a Conflict for a conflict.
func TestJoinBesideALeave(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		g := zksync.NewGroup(srv.Connect(t), "/g")
		for range bounds.Size(5000, 20000) / slowdown {
			a, err := g.Join(t.Context(), "a", nil)
			must(t, err)
			left := make(chan error, 1)
			go func() { left <- a.Leave() }()
			b, err := g.Join(t.Context(), "a", nil)
			switch {
			case err == nil:
				must(t, b.Leave())
			case !errors.Is(err, zksync.ErrIDTaken) || !errors.Is(err, session.ErrConflict):
				t.Fatal(err)
			}
			must(t, <-left)
		}
	})
}
