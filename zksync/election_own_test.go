package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// setEphemeral creates an Ephemeral at /leader whose znode has the version of a leader's znode.
func setEphemeral(t *testing.T, m *session.Manager) *session.Ephemeral {
	t.Helper()
	e, err := m.Ephemeral(t.Context(), "/leader", []byte("ephemeral"))
	must(t, err)
	for range 3 {
		must(t, e.Set(t.Context(), []byte("ephemeral")))
	}
	return e
}

// A candidate of LayoutEphemeral whose request is lost does not lead by the znode of an Ephemeral of the same Manager, also
// if its data was set.
func TestLeaderBesideAnEphemeralThatWasSet(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		e := setEphemeral(t, m)
		a := zksync.NewElection(m, "/leader", byEphemeral)
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

// A Campaign with LayoutEphemeral that fails deletes no znode of an Ephemeral of the same Manager: if its create was refused
// after ctx had ended, its outcome was lost, or it was not sent.
func TestFailedCampaignLeavesAnEphemeral(t *testing.T) {
	for name, id := range map[string]string{"refused late": "a", "lost": "a", "not sent": strings.Repeat("x", 300<<10)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				setEphemeral(t, m)
				a := zksync.NewElection(m, "/leader", byEphemeral, zksync.WithID(id))
				srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: "/leader", Do: zksynctest.Delay(200 * time.Millisecond)})
				if name == "lost" {
					time.AfterFunc(150*time.Millisecond, func() { srv.Disconnect(live(t, m).ID()) })
				}
				if _, err := a.Campaign(within(t, 100*time.Millisecond)); err == nil {
					t.Error("leads beside an Ephemeral")
				}
				time.Sleep(time.Minute)
				// A znode that was deleted is created again.
				for _, op := range srv.Ops() {
					if op.Code == zkserver.OpDelete {
						t.Errorf("the znode of the Ephemeral was deleted: %v", op)
					}
				}
			})
		})
	}
}

// A leader with LayoutEphemeral whose znode another client has replaced by an Ephemeral of the same Manager, unseen, leaves the
// znode of the Ephemeral when it resigns.
func TestResignLeavesAnEphemeral(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		a := zksync.NewElection(m, "/leader", byEphemeral)
		_, err := a.Campaign(t.Context())
		must(t, err)
		must(t, srv.Delete("/leader"))
		setEphemeral(t, m)
		if err := a.Resign(); !errors.Is(err, zksync.ErrRemoved) {
			t.Errorf("Resign: %v, want ErrRemoved", err)
		}
		time.Sleep(time.Minute)
		if data, _ := srv.Get("/leader"); string(data) != "ephemeral" {
			t.Errorf("the znode of the Ephemeral has %q", data)
		}
	})
}

// A Campaign with LayoutEphemeral that is cancelled before its answer leaves no znode, and a candidate of the same Manager
// leads next: also without the permission READ, and if the answer is lost and a look is refused.
func TestCancelledCampaignLeavesNoUnreadableZnode(t *testing.T) {
	for _, c := range []struct {
		name                       string
		unreadable, old, lost, one bool
	}{
		{name: "without READ", unreadable: true},
		{name: "without READ, old server", unreadable: true, old: true},
		{name: "without READ, old server, lost answer", unreadable: true, old: true, lost: true},
		{name: "one look refused", one: true},
		{name: "one look refused, lost answer", one: true, lost: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				acl := zk.WorldACL(zk.PermAll)
				if c.unreadable {
					acl = zk.WorldACL(zk.PermAll &^ zk.PermRead)
				}
				m := srv.Connect(t, session.WithACL(acl...))
				id := live(t, m).ID()
				a := zksync.NewElection(m, "/leader", byEphemeral)
				srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: "/leader", At: zksynctest.BeforeReply, Do: zksynctest.Delay(200 * time.Millisecond)})
				if c.one {
					for _, look := range []zkserver.OpCode{zkserver.OpExists, zkserver.OpGetData} {
						srv.Inject(zksynctest.Fault{Op: look, Path: "/leader", Do: zksynctest.Error(zkserver.ErrNoAuth)})
					}
				}
				if c.lost {
					time.AfterFunc(150*time.Millisecond, func() { srv.Disconnect(id) })
				}
				if _, err := a.Campaign(within(t, 100*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("Campaign: %v, want the end of ctx", err)
				}
				time.Sleep(10 * time.Minute)
				if data, ok := srv.Get("/leader"); ok {
					t.Errorf("the znode is left: %q", data)
				}
				srv.RemoveFaults()
				if _, err := a.Campaign(within(t, time.Minute)); err != nil {
					t.Error("the next Campaign:", err)
				}
				if now := live(t, m).ID(); now != id {
					t.Error("the session has ended")
				}
			}, zksynctest.WithConfig(zkserver.Config{Compat38: c.old}))
		})
	}
}

// A Campaign with LayoutEphemeral whose answer is lost leads without the permission READ on servers before 3.8.4. On later
// servers it fails, and its znode stays until the session ends, as LayoutEphemeral says.
func TestLostAnswerWithoutRead(t *testing.T) {
	for _, old := range []bool{true, false} {
		t.Run(fmt.Sprint("old server ", old), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t, session.WithACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...))
				a := zksync.NewElection(m, "/leader", byEphemeral)
				srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: "/leader", At: zksynctest.AfterCommit, Do: zksynctest.Disconnect})
				_, err := a.Campaign(within(t, time.Minute))
				if old {
					must(t, err)
					must(t, a.Resign())
				} else if !errors.Is(err, zk.ErrNoAuth) {
					t.Errorf("Campaign: %v, want the refusal of the look", err)
				}
				time.Sleep(10 * time.Minute)
				if _, ok := srv.Get("/leader"); ok == old {
					t.Errorf("the znode exists: %v", ok)
				}
				must(t, srv.ExpireSession(live(t, m).ID()))
				if _, err := a.Campaign(within(t, time.Minute)); err != nil {
					t.Error("the Campaign of the next session:", err)
				}
			}, zksynctest.WithConfig(zkserver.Config{Compat38: old}))
		})
	}
}

// A candidate that gave up, and may not look for its znode, deletes no znode of a later leader of its session
// (slotHold.discardZnodes: owns).
func TestGivenUpCandidateSparesTheNextLeader(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		foreign := srv.Connect(t, session.WithACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...))
		f := zksync.NewElection(foreign, "/leader", byEphemeral)
		_, err := f.Campaign(t.Context())
		must(t, err)
		m := srv.Connect(t)
		a, b := zksync.NewElection(m, "/leader", byEphemeral), zksync.NewElection(m, "/leader", byEphemeral)
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: "/leader", At: zksynctest.BeforeCommit, Do: zksynctest.Disconnect})
		_, err = a.Campaign(within(t, time.Minute))
		mustBe(t, err, zk.ErrNoAuth, "campaign", "/leader")
		time.Sleep(17 * time.Minute)
		must(t, f.Resign())
		led, err := b.Campaign(within(t, time.Hour))
		must(t, err)
		select {
		case <-led.Done():
			t.Error("the leader has lost leadership:", context.Cause(led))
		case <-time.After(20 * time.Minute):
		}
	})
}

// A candidate that gave up removes its znode also if another client writes to it after the janitor has found it
// (chore.owns: czxid).
func TestGivenUpCandidateRemovesAZnodeThatWasSet(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		id := live(t, m).ID()
		a := zksync.NewElection(m, "/leader", byEphemeral)
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: "/leader", At: zksynctest.BeforeReply, Do: zksynctest.Delay(200 * time.Millisecond)})
		time.AfterFunc(150*time.Millisecond, func() { srv.Disconnect(id) })
		srv.Inject(zksynctest.Fault{Op: zkserver.OpDelete, Path: "/leader", Do: zksynctest.Delay(time.Second)})
		time.AfterFunc(700*time.Millisecond, func() { must(t, srv.Set("/leader", []byte("note"))) })
		_, err := a.Campaign(within(t, 100*time.Millisecond))
		mustBe(t, err, context.DeadlineExceeded, "campaign", "/leader")
		time.Sleep(10 * time.Minute)
		if data, ok := srv.Get("/leader"); ok {
			t.Errorf("the znode is left: %q", data)
		}
		_, err = a.Campaign(within(t, time.Hour))
		must(t, err)
		if now := live(t, m).ID(); now != id {
			t.Error("the session has ended")
		}
	})
}
