package zksync_test

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A consumer that may not create anything in the queue's directory takes messages where
// all directories exist (order.go: the read in open, before the creation).
func TestTakeWithoutCreate(t *testing.T) {
	for kind, open := range threeQueues {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				owner := srv.Connect(t, session.WithAuth("digest", []byte("owner:secret")), session.WithACL(zk.WorldACL(zk.PermAll)...))
				s := live(t, owner)
				if err := s.MakeDir(t.Context(), "/queues"); err != nil {
					t.Fatal(err)
				}
				acl := append(zk.WorldACL(zk.PermAll&^zk.PermCreate), zk.AuthACL(zk.PermAll)...)
				if _, err := s.Create(t.Context(), queuePath, nil, 0, acl...); err != nil {
					t.Fatal(err)
				}
				for _, dir := range []string{"zksync-claims", "zksync-markers", "zksync-consumers"} {
					if _, err := s.Create(t.Context(), queuePath+"/"+dir, nil, 0, zk.WorldACL(zk.PermAll)...); err != nil {
						t.Fatal(err)
					}
				}
				producer, put := open(owner, usualPrefetch)
				defer closeQueue(t, producer)
				for _, data := range numbers(0, 3) {
					putNow(t, put, data)
				}
				q, _ := open(srv.Connect(t), usualPrefetch)
				want(t, deliveries["Take"](t, q, 1), numbers(0, 1))
				want(t, deliveries["TryTake"](t, q, 1), numbers(1, 2))
				want(t, deliveries["Chan"](t, q, 1), numbers(2, 3))
				closeQueue(t, q)
			})
		})
	}
}
