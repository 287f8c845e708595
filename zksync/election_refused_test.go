package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
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

// Run ends with the refusal of its resignation for whatever reason, and the candidate leads until its session ends.
func TestRunWhoseResignationIsRefusedForAnyReason(t *testing.T) {
	for _, code := range []int32{-6, -8, -102, -111, -125} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				e := zksync.NewElection(srv.Connect(t), "/stage")
				srv.Inject(zksynctest.Fault{Op: zkserver.OpDelete, Times: -1, Do: zksynctest.Error(code)})
				if err := e.Run(t.Context(), func(context.Context) error { return nil }); err == nil {
					t.Error("Run: nil, want the refusal")
				}
				time.Sleep(time.Minute)
				if left, _ := srv.Children("/stage"); len(left) != 1 {
					t.Errorf("the candidates %v are there, want the one whose resignation was refused", left)
				}
			})
		})
	}
}
