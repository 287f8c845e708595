package zksync_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// commits reports whether an operation is the transaction of Session.SyncQuorum.
func commits(op zkserver.Op) bool {
	return op.Code == zkserver.OpMulti && len(op.Sub) == 1 && op.Sub[0].Code == zkserver.OpCheck
}

// wantCommitFirst fails the test unless the first read of a path after a lost answer
// comes behind a commit. An operation whose answer was lost was struck by a fault.
func wantCommitFirst(t *testing.T, srv *zksynctest.Server, id int64, path string) {
	t.Helper()
	ops := srv.Ops()
	lost := slices.IndexFunc(ops, func(op zkserver.Op) bool { return op.Session == id && op.Fault != "" })
	if lost < 0 {
		t.Fatal("no answer was lost")
	}
	committed := false
	for _, op := range ops[lost+1:] {
		if op.Session != id {
			continue
		}
		committed = committed || commits(op) && op.Done
		reads := op.Code == zkserver.OpGetData || op.Code == zkserver.OpExists || op.Code == zkserver.OpMultiRead || op.Code == zkserver.OpGetChildren2
		about := strings.HasPrefix(op.Path, path) || slices.ContainsFunc(op.Sub, func(sub zkserver.SubOp) bool { return strings.HasPrefix(sub.Path, path) })
		if !reads || !about {
			continue
		}
		if !committed {
			t.Errorf("read without a commit after a lost answer: %v", op)
		}
		return
	}
	t.Errorf("nothing of %s was read after a lost answer", path)
}

// After a lost answer a primitive believes only reads behind a commit, since a deposed leader does not show the
// commits of its successor. To see this test fail, leave SyncQuorum out of participant.findAfterLoss
// or take.outcome.
func TestLostAnswersAreLookedUpBehindACommit(t *testing.T) {
	// lose loses the answer to the next transaction, and the markers of queues, so that
	// only a read tells the outcome.
	lose := func(st *stage) {
		st.srv.ResetOps()
		f := zksynctest.Fault{Session: live(st.t, st.m).ID(), Op: zkserver.OpMulti, At: zksynctest.AfterCommit, Do: zksynctest.Call(func() {
			names, _ := st.srv.Children(stagePath + "/zksync-markers")
			for _, name := range names {
				st.must(st.srv.Delete(stagePath + "/zksync-markers/" + name))
			}
		})}
		st.srv.Inject(f)
		f.Do = zksynctest.Disconnect
		st.srv.Inject(f)
	}
	for _, c := range []struct {
		name string
		path string // that is looked up
		run  func(st *stage)
	}{
		{"DoubleBarrier.Enter", stagePath + "/member-a", func(st *stage) {
			b := zksync.NewDoubleBarrier(st.m, stagePath, 1, zksync.WithID("a"))
			lose(st)
			st.must(b.Enter(st.ctx))
		}},
		{"Election.Campaign, LayoutEphemeral", stagePath + "/leader", func(st *stage) {
			e := zksync.NewElection(st.m, stagePath+"/leader", byEphemeral)
			lose(st)
			_, err := e.Campaign(st.ctx)
			st.must(err)
			st.must(e.Resign())
		}},
		{"DoubleBarrier.Leave", stagePath + "/member-a", func(st *stage) {
			b := zksync.NewDoubleBarrier(st.m, stagePath, 1, zksync.WithID("a"))
			st.must(b.Enter(st.ctx))
			lose(st)
			st.must(b.Leave(st.ctx))
		}},
		{"Queue.Take", stagePath + "/qn-", func(st *stage) {
			q := zksync.NewQueue(st.m, stagePath)
			defer q.Close()
			theirs := zksync.NewQueue(st.other, stagePath)
			st.must(theirs.PutAll(st.ctx, []byte("makes the marker"), []byte("x")))
			_, err := q.Take(st.ctx)
			st.must(err)
			st.srv.Inject(zksynctest.Fault{Session: live(st.t, st.m).ID(), Op: zkserver.OpGetData, At: zksynctest.BeforeReply, Do: zksynctest.Call(func() { lose(st) })})
			if data, _ := q.Take(st.ctx); string(data) != "x" {
				st.t.Errorf("took %q", data)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				st := newStage(t, srv)
				id := live(t, st.m).ID()
				c.run(st)
				time.Sleep(time.Second)
				wantCommitFirst(t, srv, id, c.path)
			})
		})
	}
}
