package queue

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
)

// The counter of a directory is spent: while a consumer has not learned the outcome of a message, the message is removed, and a
// later message of the same name is put and listed. However the former message ends, a consumer that waits gets the later
// one, from each kind of directory (partition.leave).
func TestMessageOfARepeatedName(t *testing.T) {
	dirs := map[string]struct {
		kind      Kind
		dir, name string
	}{
		"Queue":         {InOrder, "/q", ItemPrefix + "2147483647"},
		"wrapped":       {InOrder, "/q", ItemPrefix + "-2147483648"},
		"kazoo":         {LikeKazoo, "/q", entryPrefix + "2147483647"},
		"PriorityQueue": {ByPriority, "/q/p-005", ItemPrefix + "2147483647"},
		"DelayQueue":    {ByTime, "/q/" + DelayPartition(946684800000), DelayedPrefix(946684800000) + "2147483647"},
		"Retry":         {InOrder, "/q/" + laterName, laterPrefix(946684800000, 1) + "2147483647"},
	}
	ends := map[string]func(c *tester, r messageRef){
		"removed":    func(c *tester, r messageRef) { c.v.partitions.forget(r) },
		"missing":    func(c *tester, r messageRef) { c.v.partitions.forgetMissing(r) },
		"given back": func(c *tester, r messageRef) { c.v.partitions.requeue(r) },
		"unclaimed":  func(c *tester, r messageRef) { c.v.partitions.relist(r) },
		"unreadable": func(c *tester, r messageRef) { c.v.skip(r, zk.ErrNoAuth) },
	}
	for what, d := range dirs {
		for how, end := range ends {
			t.Run(what+" "+how, func(t *testing.T) {
				withRig(t, 0, func(r rig) {
					a := r.open(d.kind, true)
					if d.dir == "/q/"+laterName {
						r.must(a.ledger.do(newChange(func(table *claimTable) { table.later = true })))
					}
					if d.dir != "/q" {
						r.must(r.srv.Create(d.dir, nil))
					}
					path := d.dir + "/" + d.name
					r.must(r.srv.Create(path, []byte("a")))
					picked := a.pick(1)
					if len(picked.refs) != 1 {
						r.Fatal("the message is not picked")
					}
					r.must(r.srv.Delete(path))
					r.must(r.srv.Create(path, []byte("b")))
					ctx, cancel := context.WithTimeout(r.Context(), time.Hour)
					defer cancel()
					done := make(chan selection, 1)
					go func() {
						sel, err := a.v.next(ctx, one, func(context.Context) error { return nil }, false)
						if err != nil && !errors.Is(err, context.DeadlineExceeded) {
							r.Error(err)
						}
						done <- sel
					}()
					synctest.Wait() // the directory is listed, and the name belongs to the picked message
					end(a, picked.refs[0])
					if sel := <-done; len(sel.refs) != 1 || sel.refs[0].path() != path {
						r.Errorf("the later message is not picked: %v", sel.refs)
					}
				})
			})
		}
	}
}
