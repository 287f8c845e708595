package zkserver_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// panicsEnv makes TestAPanicOfMatchIsSeen end its process by a panic of Match.
const panicsEnv = "ZKSYNC_MATCH_PANICS"

// A panic of Match ends the test binary with the panic and the place, and the test does not hang without a message.
func TestAPanicOfMatchIsSeen(t *testing.T) {
	t.Parallel()
	if os.Getenv(panicsEnv) != "" { // in the process that is started below
		s := start(t, zkserver.Config{})
		r := session(t, s, 20*time.Second)
		s.Inject(zkserver.Fault{Match: func(op zkserver.Op) bool { return op.Sub[0].Path == "/x" }, Do: zkserver.Drop})
		r.create("/x", 0)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run", "^TestAPanicOfMatchIsSeen$")
	cmd.Env = append(os.Environ(), panicsEnv+"=1")
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("the test binary has not ended within 30s; its output: %q", out)
	}
	if err == nil || !strings.Contains(string(out), "index out of range") || !strings.Contains(string(out), "fault_match_end_test.go") {
		t.Errorf("the output does not show the panic of Match (%v):\n%s", err, out)
	}
}

// A Match that ends its goroutine, by FailNow, strikes nothing, and the server goes on.
func TestMatchThatEndsItsGoroutine(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 20*time.Second)
		var faults []*zkserver.Injection
		for _, at := range []zkserver.Moment{zkserver.BeforeCommit, zkserver.AfterCommit, zkserver.BeforeReply, zkserver.OnWatch} {
			faults = append(faults, s.Inject(zkserver.Fault{
				Path: "/a", At: at, Do: zkserver.Drop, Match: func(zkserver.Op) bool { runtime.Goexit(); return true },
			}))
		}
		r.want(zkserver.ErrNoNode, zkserver.OpExists, watchRec("/a"))
		if err := s.Create("/a", nil); err != nil {
			t.Fatal(err)
		}
		if got := r.event(); got != (event{1, "/a"}) {
			t.Errorf("%v", got)
		}
		r.want(zkserver.ErrNodeExists, zkserver.OpCreate, createRec("/a", "", 0))
		for _, inj := range faults {
			if inj.Count() != 0 {
				t.Errorf("%v has struck", inj.Fault())
			}
		}
	})
}
