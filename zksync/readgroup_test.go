package zksync

import (
	"testing"
	"testing/synctest"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A shared znode that is granted when its last reader gives up is deleted.
func TestGroupForNobodyLeaves(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		rw := NewRWMutex(srv.Connect(t), "/x")
		g := newReadGroup(&rw.r)
		if err := g.stand(); err != nil || g.stake != nil {
			t.Errorf("a group of nobody: %v, error %v", g.stake, err)
		}
		synctest.Wait()
		if names, _ := srv.Children("/x"); len(names) > 0 {
			t.Errorf("left behind: %v", names)
		}
		g.cancel()
	})
}
