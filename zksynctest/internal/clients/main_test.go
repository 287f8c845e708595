package clients

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/internal/servers"
)

func TestMain(m *testing.M) {
	servers.AtOnce(6)
	goleak.VerifyTestMain(m)
}
