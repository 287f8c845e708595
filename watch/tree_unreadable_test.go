package watch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

var forJoe = []zkserver.ACL{{Perms: zk.PermAll, Scheme: "digest", ID: "joe:x"}}

// A Tree asks for the data of unreadable znodes, and not for their lists, when a znode beside them is created, and shows both
// when they have become readable (mirror.applyList).
func TestTreeBesideUnreadableZnodes(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		must(t, srv.Create("/r", nil))
		must(t, srv.Create("/r/a", []byte("x")))
		must(t, srv.Create("/r/a/below", nil))
		must(t, srv.SetACL("/r/a", forJoe))
		c := watch.Tree(t.Context(), m, "/r")
		must(t, c.WaitSynced(t.Context()))
		srv.ResetOps()
		for i := range 20 {
			must(t, srv.Create(fmt.Sprint("/r/s", i), nil))
			must(t, c.WaitSynced(t.Context()))
		}
		lists := 0
		for _, op := range srv.Ops() {
			if op.Path == "/r/a" && op.Code != zkserver.OpGetData && op.Code != zkserver.OpExists {
				lists++
			}
		}
		if lists > 0 {
			t.Errorf("%d requests for the list of the unreadable znode while 20 others were created", lists)
		}
		must(t, srv.SetACL("/r/a", []zkserver.ACL{{Perms: zk.PermAll, Scheme: "world", ID: "anyone"}}))
		must(t, srv.Create("/r/last", nil))
		must(t, c.WaitSynced(t.Context()))
		if got, _ := c.Get("/r/a"); string(got.Data) != "x" {
			t.Errorf("synced, and the mirror has %q", got.Data)
		}
		if _, ok := c.Get("/r/a/below"); !ok {
			t.Error("synced, and the mirror lacks the child of the znode that has become readable")
		}
	})
}

// A Tree shows a readable znode that has replaced an unreadable one between a refused read and the look behind it.
func TestTreeOfAZnodeReplacedDuringTheLook(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		must(t, srv.Create("/r", nil))
		must(t, srv.Create("/r/a", nil))
		must(t, srv.SetACL("/r/a", forJoe))
		c := watch.Tree(t.Context(), m, "/r")
		must(t, c.WaitSynced(t.Context()))
		// The list that names the new znode is asked for ahead of the look, and shows the znode behind the refused read.
		srv.Inject(zksynctest.Fault{Op: zkserver.OpGetData, Path: "/r/a", Do: zksynctest.Call(func() { must(t, srv.Create("/r/c", nil)) })})
		srv.Inject(zksynctest.Fault{Op: zkserver.OpGetChildren2, Path: "/r", Nth: 2, Do: zksynctest.Call(func() {
			must(t, srv.Delete("/r/a"))
			must(t, srv.Create("/r/a", []byte("new")))
			must(t, srv.Create("/r/a/below", nil))
		})})
		must(t, srv.Create("/r/b", nil))
		time.Sleep(time.Minute)
		if got, _ := c.Get("/r/a"); string(got.Data) != "new" {
			t.Errorf("a minute after the znode was replaced, the mirror has %q", got.Data)
		}
		if _, ok := c.Get("/r/a/below"); !ok {
			t.Error("a minute after the znode was replaced, the mirror lacks its child")
		}
	})
}
