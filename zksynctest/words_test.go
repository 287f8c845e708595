package zksynctest_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Any client can use Addr outside a bubble, four-letter words included.
func TestFourLetterWordsAtTheAddress(t *testing.T) {
	srv := zksynctest.Start(t, zksynctest.WithConfig(zkserver.Config{FourLetterWords: []string{"*"}}))
	servers := []string{srv.Addr()}
	stats, ok := zk.FLWSrvr(servers, 10*time.Second)
	if !ok || stats[0].Error != nil || stats[0].Mode != zk.ModeStandalone {
		t.Errorf("%+v", stats[0])
	}
	if ok := zk.FLWRuok(servers, 10*time.Second); !ok[0] {
		t.Error("it is not ok")
	}
}
