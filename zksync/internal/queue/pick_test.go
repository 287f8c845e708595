package queue

import (
	"testing"

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
