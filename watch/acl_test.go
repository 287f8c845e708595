package watch_test

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A change behind an ACL that was closed for a time is reported after the next reconnect by Node and Children, and in
// the next session by Tree. The server of 3.9 tells no client before.
func TestChangesBehindAClosedACL(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		operator, _, err := zk.Connect([]string{"127.0.0.1:2181"}, 10*time.Second, zk.WithLogInfo(false),
			zk.WithDialer(func(network, address string, _ time.Duration) (net.Conn, error) {
				return srv.Dial(t.Context(), network, address)
			}))
		must(t, err)
		defer operator.Close()
		must(t, operator.AddAuth("digest", []byte("joe:x")))
		must(t, srv.Create("/a", []byte("old")))
		node, list := watch.Node(t.Context(), m, "/a"), watch.Children(t.Context(), m, "/a")
		tree := watch.Tree(t.Context(), m, "/a")
		must(t, tree.WaitSynced(t.Context()))
		next(t, node)
		next(t, list)

		for _, acl := range [][]zk.ACL{zk.DigestACL(zk.PermAll, "joe", "x"), zk.WorldACL(zk.PermAll)} {
			_, err = operator.SetACL("/a", acl, -1)
			must(t, err)
			must(t, srv.Set("/a", []byte("new")))
			must(t, srv.Create("/a/"+acl[0].Scheme, nil))
		}
		// The change behind the opened ACL is not reported either: the watches have gone.
		none(t, node)
		none(t, list)

		must(t, srv.Disconnect(live(t, m).ID()))
		if got := next(t, node); string(got.Data) != "new" {
			t.Errorf("after a reconnect Node reports %q", got.Data)
		}
		if got := next(t, list); !slices.Equal(got, []string{"digest", "world"}) {
			t.Errorf("after a reconnect Children reports %v", got)
		}
		must(t, srv.ExpireSession(live(t, m).ID()))
		time.Sleep(time.Minute)
		if got, _ := tree.Get("/a"); string(got.Data) != "new" || tree.Len() != 3 {
			t.Errorf("in the next session the tree of %d znodes has %q", tree.Len(), got.Data)
		}
	})
}
