package zksync_test

import (
	"context"
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

// remove deletes a znode as an operator does.
func remove(t testing.TB, srv *zksynctest.Server, path string) {
	t.Helper()
	if err := srv.Delete(path); err != nil {
		t.Fatal(err)
	}
}
