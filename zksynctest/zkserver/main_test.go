package zkserver_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/internal/servers"
)

func TestMain(m *testing.M) {
	servers.CollectLess()
	goleak.VerifyTestMain(m)
}
