package queue

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
)

// A message that a Take of the same consumer has picked stays free when later messages are claimed.
func TestClaimPastAPickedMessage(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a := r.open(InOrder, true)
		picked := a.pick(1)
		a.receive(1)
		if e := a.state().table.entry(picked.refs[0].message); e.state == claimed {
			r.Error("the message that was not claimed is claimed")
		}
	})
}

// A message that one consumer skips stays free for others when later messages are claimed.
func TestClaimPastASkippedMessage(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a := r.open(InOrder, true)
		skipped := a.pick(1)
		a.v.skip(skipped.refs[0], zk.ErrNoAuth)
		a.receive(1)
		if e := a.state().table.entry(skipped.refs[0].message); e.state == claimed {
			r.Error("the message that was skipped is claimed")
		}
	})
}

// A pick that loses its message to an event, which reports the deletion of the directory at that moment, reports a
// stale directory and no message: a Take would return without a message and without an error.
func TestPickBesideTheDeletionOfItsDirectory(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a := r.open(InOrder, true)
		a.pick(1) // lists the directory, in which another message waits
		l, st := &a.v.partitions, a.state()
		sel, wake := l.pick(func(int, int) int {
			l.all[0].recreated.Store(true)
			return 1
		}, st)
		if len(sel.refs) > 0 || sel.free || !wake.stale {
			r.Errorf("%d messages, free %v, stale %v; want a stale directory without a message", len(sel.refs), sel.free, wake.stale)
		}
	})
}

// A consumer that waits until a message falls due looks at the clock every minute, since the clock may be set forward, and
// makes no requests by that.
func TestDueMessageAfterAClockWasSet(t *testing.T) {
	withRig(t, 0, func(r rig) {
		c := r.open(ByTime, true)
		due := time.Now().Add(time.Hour).UnixMilli()
		dir := "/q/" + DelayPartition(due)
		r.must(r.srv.Create(dir, nil))
		r.must(r.srv.Create(dir+"/"+DelayedPrefix(due)+"0000000000", nil))
		_, wake, err := c.v.refreshAndPick(r.Context(), one, true)
		r.must(err)
		if in := time.Until(wake.timer()); in <= 0 || in > time.Minute {
			r.Errorf("the next look is in %v, want within a minute", in)
		}
		ctx, cancel := context.WithTimeout(r.Context(), 50*time.Minute)
		defer cancel()
		waits := func(context.Context) error { return nil }
		taken := make(chan error)
		go func() {
			_, err := c.v.next(ctx, one, waits, false)
			taken <- err
		}()
		synctest.Wait()
		r.srv.ResetOps()
		if err := <-taken; ctx.Err() == nil {
			r.Error("next:", err)
		}
		for _, op := range r.srv.Ops() {
			if strings.HasPrefix(op.Path, "/q") {
				r.Errorf("a request while a message falls due: %v", op)
			}
		}
	})
}
