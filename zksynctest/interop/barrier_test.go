package interop

import (
	"testing"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/zksync"
)

// A Barrier is the same gate for Curator and kazoo: each client can set it, wait at it and remove it.
func TestBarrier(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		b := zksync.NewBarrier(srv.Connect(t), path)
		var theirs, keepers []*handle
		for _, l := range []struct {
			in   *language
			kind string
		}{{java, "curator-barrier"}, {python, "kazoo-barrier"}} {
			c := l.in.peer(t).connect(t, srv.Address(), alive)
			theirs = append(theirs, c.make(t, l.kind, path))
			keepers = append(keepers, c.make(t, l.kind, path))
		}
		sets := []func(){
			func() { must(t, b.Set(t.Context())) },
			func() { keepers[0].call(t, "set") },
			func() { keepers[1].call(t, "set") },
		}
		removes := []func(){
			func() { must(t, b.Remove(t.Context())) },
			func() { keepers[0].call(t, "remove") },
			func() { keepers[1].call(t, "remove") },
		}
		for i, set := range sets {
			for j, remove := range removes {
				must(t, b.Wait(t.Context()))
				for _, h := range theirs {
					h.want(t, "true", "wait", "10000")
				}
				set()
				ours := start(func() error { return b.Wait(t.Context()) })
				var waits []<-chan answer
				for _, h := range theirs {
					h.want(t, "false", "wait", "20")
					waits = append(waits, h.start("wait", "30000"))
				}
				waiting(t, "Wait", ours)
				remove()
				ended(t, "Wait", ours)
				for k, w := range waits {
					if got := answered(t, "wait", w); got != "true" {
						t.Errorf("set by %d, removed by %d: %s was told %s", i, j, theirs[k].kind, got)
					}
				}
			}
		}
	})
}
