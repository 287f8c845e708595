package session_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Watches that are given up while a new connection is not in use yet are removed from the server.
func TestWatchesThatAreGivenUpDuringAReconnect(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		s := current(t, m)
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 300 {
			if _, _, _, err := s.ExistsW(ctx, fmt.Sprint("/", i)); err != nil {
				t.Fatal(err)
			}
		}
		// The watches are armed behind the sync, and the connection is in use from its answer on.
		srv.Inject(zkserver.Fault{Op: zkserver.OpSync, At: zkserver.BeforeReply, Do: zkserver.Delay(time.Second)})
		if err := srv.Disconnect(s.ID()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second / 2)
		cancel()
		time.Sleep(time.Minute)
		if got, want := srv.Watches(), m.Stats().Watches; got != want || got > 64 {
			t.Errorf("the server has %d watches, and the client counts %d, want 64 at most", got, want)
		}
	})
}
