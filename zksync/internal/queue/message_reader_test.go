package queue

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// The names of messages that another client has removed leave the ledger also if the read fails at a later message, which
// could not be given back (message_reader.go: the deferred function of read).
func TestFailedReadDropsTheMissingMessages(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a := r.open(InOrder, true)
		r.must(r.srv.SetACL("/q/"+itemName(1), []zkserver.ACL{{Perms: zk.PermAll, Scheme: "digest", ID: "other:x"}}))
		done, err := a.ledger.claim(func(*orderState, int) selection { return a.pick(2) }, nil, &idleLine{v: a.v})
		r.must(err)
		a.wantNames(2)
		r.must(r.srv.Delete("/q/" + itemName(0)))
		r.srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Do: zksynctest.Error(-102)}) // of the request that gives back
		if found, _, err := (&messageReader{v: a.v}).read(r.Context(), done.all, nil); err == nil || len(found) > 0 {
			r.Errorf("read %d messages: %v, want a failure", len(found), err)
		}
		time.Sleep(time.Minute)
		a.wantNames(0)
	})
}
