package zksync_test

import (
	"testing"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// kazoo's participants delete ready when the first of them begins to leave. The round goes on all the same until all of
// its participants have left: no Leave returns before, and no participant enters the next round. A participant of kazoo's
// comes again under the same name, and is no participant of the former round then.
func TestDoubleBarrierWhoseReadyKazooDeletes(t *testing.T) {
	const dir, theirs = "/b", "/b/5fd9e7c28fbc4f8ba1ff3cbcb5a6c07b"
	for name, returns := range map[string]bool{"kazoo goes": false, "kazoo comes again": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				newOne := func() *zksync.DoubleBarrier { return zksync.NewDoubleBarrier(srv.Connect(t), dir, 3) }
				a, b, late := newOne(), newOne(), newOne()
				must(t, srv.Create(dir, nil))
				must(t, srv.Create(theirs, nil))
				first, second := start(func() error { return a.Enter(t.Context()) }), start(func() error { return b.Enter(t.Context()) })
				over(t, "Enter", first)
				over(t, "Enter", second)
				waits := start(func() error { return late.Enter(t.Context()) })
				pending(t, "Enter during the round", waits)

				must(t, srv.Delete(dir+"/ready"))
				left := start(func() error { return a.Leave(t.Context()) })
				pending(t, "Leave while others are inside", left)
				pending(t, "Enter while others are inside", waits)
				other := start(func() error { return b.Leave(t.Context()) })
				pending(t, "Leave before kazoo has left", left)
				pending(t, "the other Leave before kazoo has left", other)
				pending(t, "Enter before kazoo has left", waits)
				must(t, srv.Delete(theirs))
				if returns {
					must(t, srv.Create(theirs, nil))
				}
				over(t, "Leave", left)
				over(t, "the other Leave", other)

				again := start(func() error { return a.Enter(t.Context()) })
				if !returns {
					pending(t, "Enter of two", again)
					must(t, srv.Create(theirs, nil))
					must(t, srv.Create(dir+"/ready", nil)) // by kazoo, which comes last
				}
				over(t, "Enter of the next round", again)
				over(t, "Enter of the late participant", waits)
			})
		})
	}
}
