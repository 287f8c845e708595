package zksync_test

import (
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// An Ephemeral of the same Manager at the path of a leader leaves its znode alone, also at Close.
func TestEphemeralBesideALeader(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		a := zksync.NewElection(m, "/leader", zksync.WithLayout(zksync.LayoutEphemeral), zksync.WithID("a"))
		lead, err := a.Campaign(t.Context())
		must(t, err)
		e, err := m.Ephemeral(t.Context(), "/leader", []byte("ephemeral"))
		must(t, err)
		if st := <-e.Status(); st != session.Conflict {
			t.Errorf("status %v, want Conflict", st)
		}
		must(t, e.Close())
		if data, _ := srv.Get("/leader"); string(data) != "a" || lead.Err() != nil {
			t.Errorf("data %q, leadership %v, want a and no loss", data, lead.Err())
		}
		must(t, a.Resign())
	})
}

// A candidate whose request is lost does not lead by the znode of an Ephemeral of the same Manager.
func TestLeaderBesideAnEphemeral(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		e, err := m.Ephemeral(t.Context(), "/leader", []byte("ephemeral"))
		must(t, err)
		a := zksync.NewElection(m, "/leader", zksync.WithLayout(zksync.LayoutEphemeral), zksync.WithID("a"))
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: "/leader", Do: zksynctest.Disconnect})
		done := start(func() error { _, err := a.Campaign(t.Context()); return err })
		<-time.After(time.Minute) // of the bubble
		pending(t, "Campaign", done)
		must(t, e.Close())
		<-time.After(time.Minute)
		over(t, "Campaign", done)
		must(t, a.Resign())
	})
}
