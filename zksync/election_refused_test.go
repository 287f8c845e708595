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
	for _, code := range []zkserver.Code{-6, -8, -102, -111, -125} {
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

// The token of a leader is greater than the token of the leader before it, also for two candidates of one Manager with
// LayoutEphemeral, of which the first could not resign and the second gets no answer. The second candidate leads as
// soon as an operator has removed the znode.
func TestLeaderAfterARefusedResignation(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		a := zksync.NewElection(m, path, zksync.WithLayout(zksync.LayoutEphemeral), zksync.WithID("a"))
		b := zksync.NewElection(m, path, zksync.WithLayout(zksync.LayoutEphemeral), zksync.WithID("b"))
		lead, err := a.Campaign(t.Context())
		must(t, err)
		before, _ := zksync.Token(lead)
		refused := srv.Inject(zksynctest.Fault{Op: zkserver.OpDelete, Path: path, Times: -1, Do: zksynctest.Error(-102)})
		if err := a.Resign(); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("Resign: %v, want the refusal", err)
		}
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: path, At: zkserver.AfterCommit, Do: zkserver.Disconnect})
		led := make(chan error, 1)
		go func() {
			lead, err = b.Campaign(t.Context())
			led <- err
		}()
		time.Sleep(time.Minute)
		pending(t, "Campaign beside the znode of another candidate", led)
		must(t, srv.Delete(path))
		must(t, <-led)
		if after, _ := zksync.Token(lead); after <= before {
			t.Errorf("the next leader has token %d, the one before had %d", after, before)
		}
		refused.Remove()
		time.Sleep(10 * time.Minute) // the removal of the first candidate is tried again
		must(t, b.Resign())
	})
}

// A candidate of LayoutEphemeral whose Campaign has failed, and whose znode the server refuses to remove, does not lend
// that znode to another candidate of its Manager.
func TestLeaderAfterARefusedRemoval(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		a := zksync.NewElection(m, path, zksync.WithLayout(zksync.LayoutEphemeral), zksync.WithID("a"))
		b := zksync.NewElection(m, path, zksync.WithLayout(zksync.LayoutEphemeral), zksync.WithID("b"))
		ctx, cancel := context.WithCancel(t.Context())
		must(t, srv.Create("/locks", nil))
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: path, At: zkserver.BeforeReply, Do: zksynctest.Delay(time.Second)})
		time.AfterFunc(time.Second/2, cancel)
		srv.Inject(zksynctest.Fault{Op: zkserver.OpDelete, Path: path, Times: -1, Do: zksynctest.Error(-102)})
		if _, err := a.Campaign(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("Campaign: %v, want the end of its ctx", err)
		}
		time.Sleep(time.Minute)
		if data, ok := srv.Get(path); !ok || string(data) != "a" {
			t.Fatalf("the znode of the first candidate: %q, %v", data, ok)
		}
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: path, At: zkserver.AfterCommit, Do: zkserver.Disconnect})
		brief, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		if _, err := b.Campaign(brief); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Campaign beside the znode of another candidate: %v", err)
		}
		srv.RemoveFaults()
		must(t, srv.Delete(path))
		_, err := b.Campaign(t.Context())
		must(t, err)
		must(t, b.Resign())
	})
}
