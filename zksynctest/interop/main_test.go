package interop

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/zksynctest"
)

// peerEnv makes the test binary a peer in Go instead of running tests.
const peerEnv = "ZKSYNC_INTEROP_PEER"

func TestMain(m *testing.M) {
	if os.Getenv(peerEnv) == "1" {
		servePeer(os.Stdin, os.Stdout)
		os.Exit(0)
	}
	servers.AtOnce(12)
	goleak.VerifyTestMain(stopper{zksynctest.StopSharedAfter(m)})
}

// A stopper ends the shared processes after all tests.
type stopper struct{ tests zksynctest.Runner }

func (s stopper) Run() int {
	code := s.tests.Run()
	stopSharedPeers()
	return code
}

// both runs test on both kinds of servers, in parallel with other tests. Each test has its own
// path. The tests share the peers, but each handle of a peer has its own thread.
func both(t *testing.T, test func(t *testing.T, srv servers.Server)) {
	t.Helper()
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		t.Parallel()
		test(t, srv)
	})
}
