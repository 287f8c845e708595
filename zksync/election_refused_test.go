package zksync_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// Run whose resignation the server refuses says so, beside the result of work and the end of ctx.
func TestRunWhoseResignationIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		st := newStage(t, srv)
		st.deny(zk.PermDelete, "/stage")
		failed := errors.New("the work has failed")
		err := zksync.NewElection(st.m, "/stage").Run(t.Context(), func(context.Context) error { return failed })
		if !errors.Is(err, zk.ErrNoAuth) || !errors.Is(err, failed) {
			t.Errorf("Run: %v, want the refusal and %q", err, failed)
		}
	})
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		st := newStage(t, srv)
		st.deny(zk.PermDelete, "/stage")
		ctx, cancel := context.WithCancel(t.Context())
		ran := started(ctx, func(ctx context.Context) error {
			return zksync.NewElection(st.m, "/stage").Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
		})
		synctest.Wait()
		cancel()
		if err := <-ran; !errors.Is(err, zk.ErrNoAuth) || !errors.Is(err, context.Canceled) {
			t.Errorf("Run whose ctx has ended: %v, want the refusal and the end of ctx", err)
		}
	})
}
