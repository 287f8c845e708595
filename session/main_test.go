package session_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/zksynctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(zksynctest.StopSharedAfter(m)) }
