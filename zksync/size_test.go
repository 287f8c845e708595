package zksync_test

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// An acquisition fails if the znode of WithSizeFrom may not be read: the default could
// be more than the operators allow.
func TestSemaphoreSizeThatMayNotBeRead(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		_, err := live(t, m).Create(t.Context(), semSize, []byte("1"), zk.FlagPersistent, zk.DigestACL(zk.PermAll, "other", "secret")...)
		must(t, err)
		s := zksync.NewSemaphore(m, sem, 2, zksync.WithSizeFrom(semSize))
		mustBe(t, s.Acquire(t.Context(), 1), zk.ErrNoAuth, "acquire", sem)
		wantUnits(t, srv, 0, 0)
	})
}
