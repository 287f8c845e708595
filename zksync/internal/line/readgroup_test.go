package line

import (
	"testing"
	"testing/synctest"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A shared znode that is granted when its last reader gives up is deleted.
func TestGroupForNobodyLeaves(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		dir := &znode.Directory{Path: "/x"}
		g := newReadGroup(NewReaders(&Line{Manager: srv.Connect(t), Dir: dir, Rule: SharedRule, Class: Reader, Op: "rlock", Name: Curator.Reader}))
		if err := g.stand(); err != nil || g.grant != nil {
			t.Errorf("a group of nobody: %v, error %v", g.grant, err)
		}
		synctest.Wait()
		if names, _ := srv.Children("/x"); len(names) > 0 {
			t.Errorf("left behind: %v", names)
		}
		g.cancel()
	})
}
