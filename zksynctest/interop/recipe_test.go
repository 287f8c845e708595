package interop

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// TestRecipeMissesItsTurn documents a fault of the lock recipe that comes with
// ZooKeeper 3.8: where the one in front leaves between its listing and its look at
// that one, it watches nothing and waits for ever, though it is first in line. That
// is so without anybody of ours. Who asks again gets the lock, as our helper does.
func TestRecipeMissesItsTurn(t *testing.T) {
	t.Parallel()
	srv := zksynctest.Start(t, zksynctest.WithTick(500*time.Millisecond))
	must(t, srv.Create("/lock", nil))
	theirs := java.peer(t).connect(t, srv.Addr(), alive)
	first, second := theirs.make(t, "recipe-lock", "/lock"), theirs.make(t, "recipe-lock", "/lock")
	first.call(t, "acquire")
	names, _ := srv.Children("/lock")
	front := "/lock/" + strings.Join(names, "")
	srv.Inject(zksynctest.Fault{Op: zkserver.OpExists, Path: front, At: zksynctest.BeforeCommit, Do: zksynctest.Call(func() {
		if err := srv.Delete(front); err != nil {
			t.Error(err)
		}
	})})
	second.want(t, "false", "once", "1000")
	if names, _ := srv.Children("/lock"); len(names) != 1 {
		t.Errorf("there are %q: it is first in line", names)
	}
	second.want(t, "true", "try", "10000")
	second.call(t, "release")
}
