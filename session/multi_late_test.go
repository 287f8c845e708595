package session_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// MultiLate delivers the outcome of a transaction whose ctx has ended before the answer: its results, its refusal, or that
// the answer was lost. There is no later outcome of a transaction that was answered in time or not sent.
func TestMultiLate(t *testing.T) {
	set := &zk.SetDataRequest{Path: "/x", Version: 0}
	for name, want := range map[string]session.Class{
		"done": session.ClassOK, "refused": session.ClassBadVersion, "lost": session.ClassConnectionLost,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				s := current(t, connect(t, srv, three))
				create(t, s, "/x", 0)
				if name == "refused" {
					_, err := s.Set(t.Context(), "/x", nil, 0)
					mustBe(t, err, nil)
				}
				srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: zkserver.BeforeReply, Do: zksynctest.Delay(2 * time.Second)})
				if name == "lost" {
					time.AfterFunc(time.Second, func() { srv.Disconnect(s.ID()) })
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
				defer cancel()
				_, late, err := s.MultiLate(ctx, set)
				if !errors.Is(err, context.DeadlineExceeded) || late == nil {
					t.Fatalf("%v, want the end of ctx and a later outcome", err)
				}
				o := <-late
				if session.ClassOf(o.Err) != want || o.Err == nil && o.Results[0].Stat.Version != 1 {
					t.Errorf("the outcome is %v, %v; want %v", o.Results, o.Err, want)
				}
			})
		})
	}
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		create(t, s, "/x", 0)
		if results, late, err := s.MultiLate(t.Context(), set); err != nil || late != nil || len(results) != 1 {
			t.Errorf("answered: %v, later outcome %v, %v", results, late != nil, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, late, err := s.MultiLate(ctx, set); !errors.Is(err, context.Canceled) || late != nil {
			t.Errorf("not sent: later outcome %v, %v", late != nil, err)
		}
	})
}

// DiscardIf removes the ephemeral of this session for which its function returns true, also when the znode may be read only
// later, and no other ephemeral.
func TestDiscardIf(t *testing.T) {
	for _, ours := range []bool{true, false} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s := current(t, connect(t, srv, three))
			create(t, s, "/x", zk.FlagEphemeral)
			srv.Inject(zksynctest.Fault{Op: zkserver.OpExists, Path: "/x", Do: zksynctest.Error(zkserver.ErrNoAuth)})
			gone := s.DiscardIf("/x", func(stat *zk.Stat) bool { return (stat.Version == 0) == ours })
			if err := <-gone; !errors.Is(err, zk.ErrNoAuth) {
				t.Errorf("%v, want the refusal of the look", err)
			}
			time.Sleep(10 * time.Minute)
			mustExist(t, srv, "/x", !ours)
		})
	}
}
