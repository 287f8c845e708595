package enumeration_test

import (
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/internal/servers"
)

func TestMain(m *testing.M) {
	servers.CollectLess()
	servers.AtOnce(runtime.GOMAXPROCS(0) + maxHung)
	goleak.VerifyTestMain(m)
}
