package session_test

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// MultiOnce sends a transaction once: it returns a refusal that may pass, and does not use another connection than the
// named one.
func TestMultiOnce(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		create(t, s, "/x", 0)
		set := &zk.SetDataRequest{Path: "/x", Version: 0}
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Do: zksynctest.Error(-127)})
		srv.ResetOps()
		if _, err := s.MultiOnce(t.Context(), 0, set); session.ClassOf(err) != session.ClassTransient {
			t.Error("a refusal that may pass:", err)
		}
		if n := count(srv.Ops(), zkserver.OpMulti); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		srv.ResetOps()
		if _, err := s.MultiOnce(t.Context(), s.Connection()+1, set); session.ClassOf(err) != session.ClassTransient {
			t.Error("another connection:", err)
		}
		if n := count(srv.Ops(), zkserver.OpMulti); n != 0 {
			t.Errorf("%d requests over another connection", n)
		}
		if results, err := s.MultiOnce(t.Context(), s.Connection(), set); err != nil || len(results) != 1 || results[0].Stat.Version != 1 {
			t.Errorf("%v, error %v", results, err)
		}
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: zkserver.BeforeReply, Do: zksynctest.Disconnect})
		if _, err := s.MultiOnce(t.Context(), 0, set); session.ClassOf(err) != session.ClassConnectionLost {
			t.Error("a lost answer:", err)
		}
	})
}
