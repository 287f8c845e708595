package zksync_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A participant that has counted enough others opens no barrier whose directory was deleted and created again since,
// although the versions of the new directory are the same (Participant.open: the check of the child).
func TestDoubleBarrierOpensNoDirectoryCreatedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		a := zksync.NewDoubleBarrier(m, "/b", 3)
		entering(t.Context(), double(t, srv, 3)) // version 1
		entering(t.Context(), double(t, srv, 3)) // version 2
		release := holdReady(srv, live(t, m).ID())
		late := entering(t.Context(), a) // version 3; it has counted three
		names, _ := srv.Children("/b")
		for _, name := range names {
			remove(t, srv, "/b/"+name)
		}
		remove(t, srv, "/b")
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := entering(ctx, double(t, srv, 3)) // version 1 of the new directory
		cancel()
		mustEnd(t, "Enter", gaveUp, context.Canceled)     // version 2
		alone := entering(t.Context(), double(t, srv, 3)) // version 3
		release()
		mustEnd(t, "Enter of a participant whose znode was deleted", late, zksync.ErrLost)
		time.Sleep(2 * time.Minute)
		pending(t, "Enter of one of three", alone)
	})
}

// Enter fails with ErrLost if another client has deleted the znode of the participant before the barrier
// opened.
func TestDoubleBarrierEnterAfterARemoval(t *testing.T) {
	for _, id := range []string{"", "a"} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			var opts []zksync.DoubleBarrierOption
			if id != "" {
				opts = append(opts, zksync.WithID(id))
			}
			in := entering(t.Context(), double(t, srv, 2, opts...))
			names, _ := srv.Children("/b")
			remove(t, srv, "/b/"+names[0])
			time.Sleep(100 * time.Millisecond)
			other := entering(t.Context(), double(t, srv, 2))
			mustEnter(t, double(t, srv, 2))
			mustEnd(t, "Enter", other, nil)
			mustEnd(t, "Enter of a participant whose znode was deleted", in, zksync.ErrLost)
		})
	}
}

// An Enter whose ctx ends after the barrier has opened fails if another client has deleted the znode of the
// participant before.
func TestDoubleBarrierEnterCancelledAfterARemoval(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		ctx, cancel := context.WithCancel(t.Context())
		in := entering(ctx, zksync.NewDoubleBarrier(m, "/b", 2))
		names, _ := srv.Children("/b")
		remove(t, srv, "/b/"+names[0])
		// It notices neither the removal nor the opening before its ctx ends.
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), At: zksynctest.OnWatch, Do: zksynctest.Drop})
		other := entering(t.Context(), double(t, srv, 2))
		mustEnter(t, double(t, srv, 2))
		mustEnd(t, "Enter", other, nil)
		cancel()
		mustEnd(t, "Enter of a participant whose znode was deleted", in, context.Canceled)
	})
}

// Leave of a participant whose znode an operator has deleted fails with ErrLost, and leaves the znode of the participant
// that has the same id now.
func TestDoubleBarrierLeavesTheSuccessorOfAnID(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		a, c := double(t, srv, 2, zksync.WithID("a")), double(t, srv, 2)
		in := entering(t.Context(), c)
		mustEnter(t, a)
		mustEnd(t, "Enter", in, nil)
		remove(t, srv, "/b/member-a")
		mustLeave(t, c) // the round ends
		successor := double(t, srv, 2, zksync.WithID("a"))
		in = entering(t.Context(), successor)
		if err := a.Leave(t.Context()); !errors.Is(err, zksync.ErrLost) {
			t.Errorf("Leave of a participant whose znode was deleted: %v", err)
		}
		time.Sleep(time.Minute)
		pending(t, "Enter of the participant that has the id now", in)
		mustEnter(t, c)
		mustEnd(t, "Enter", in, nil)
	})
}

// remove deletes a znode as an operator does.
func remove(t testing.TB, srv *zksynctest.Server, path string) {
	t.Helper()
	if err := srv.Delete(path); err != nil {
		t.Fatal(err)
	}
}
