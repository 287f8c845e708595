package interop

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// ZooKeeper 3.8's lock recipe waits for ever if the contender before it leaves between the recipe's
// listing and its check of that contender. The test documents this fault of the recipe, without a
// contender of ours. A caller that tries again gets the lock, like our helper.
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
