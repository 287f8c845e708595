package simulation_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/zksynctest"
)

func TestMain(m *testing.M) {
	servers.CollectLess()
	servers.AtOnce(6)
	goleak.VerifyTestMain(zksynctest.StopSharedAfter(m))
}
