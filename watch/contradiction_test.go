package watch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Streams and a Cache ask a server whose answers contradict each other about once a second, and show the znode when
// the answers agree.
func TestAnswersThatContradictEachOther(t *testing.T) {
	for _, op := range []zkserver.OpCode{zkserver.OpGetData, zkserver.OpGetChildren2} {
		bounds.Bubble(t, func(t *testing.T) {
			srv := zksynctest.Start(t)
			must(t, srv.Create("/a", nil))
			must(t, srv.Create("/a/b", nil))
			m := srv.Connect(t)
			fault := srv.Inject(zkserver.Fault{Op: op, Path: "/a", Do: zkserver.Error(-101), Times: -1})
			node, children, tree := watch.Node(t.Context(), m, "/a"), watch.Children(t.Context(), m, "/a"), watch.Tree(t.Context(), m, "/a")
			time.Sleep(time.Minute)
			if n := len(srv.Ops()); n > 400 {
				t.Errorf("%v: %d requests in a minute, want 400 at most", op, n)
			}
			fault.Remove()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if state := next(t, node); !state.Exists {
				t.Error("Node does not show the znode")
			}
			if names := next(t, children); len(names) != 1 {
				t.Errorf("Children shows %q", names)
			}
			if tree.Len() != 2 {
				t.Errorf("the Cache has %d znodes, want 2", tree.Len())
			}
		})
	}
}
