package queue

import (
	"testing"
	"time"
)

// A Take does not rely on a read over an earlier connection: the event of a directory that was deleted during the
// disconnection may not have come yet (take.isOld: Connection).
func TestReadOverAnEarlierConnectionIsOld(t *testing.T) {
	withRig(t, 1, func(r rig) {
		c := r.open(InOrder, false)
		take := take{c: c.Consumer, v: c.v}
		ref, read, conn := c.pick(1).refs[0], time.Now(), c.v.s.Connection()
		isOld := func() bool { return take.isOld(ref, read, conn) }
		if isOld() {
			t.Error("a read that has just begun is old")
		}
		r.must(r.srv.Disconnect(c.v.s.ID()))
		time.Sleep(time.Second)
		if c.v.s.Connection() == 0 {
			t.Fatal("there is no other connection")
		}
		if !isOld() {
			t.Error("a read over the earlier connection is not old")
		}
	})
}
