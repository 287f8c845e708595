package interop

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/zksynctest"
)

// peerEnv makes the test binary a peer in Go instead of running tests.
const peerEnv = "ZKSYNC_INTEROP_PEER"

func TestMain(m *testing.M) {
	if os.Getenv(peerEnv) == "1" {
		servePeer(os.Stdin, os.Stdout)
		os.Exit(0)
	}
	goleak.VerifyTestMain(stopper{zksynctest.StopSharedAfter(m)})
}

// A stopper ends the processes that tests share when all have run.
type stopper struct{ tests zksynctest.Runner }

func (s stopper) Run() int {
	code := s.tests.Run()
	stopSharedPeers()
	return code
}
