package zksync_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// TryLock takes one round trip, or three beside other contenders, and TryRLock takes none if other goroutines of the
// value read.
func TestTriesTakeFewRequests(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		mu, rw := zksync.NewMutex(m, path), zksync.NewRWMutex(m, "/rw")
		tries := map[string]func(context.Context) (bool, error){"TryLock": mu.TryLock, "RWMutex.TryLock": rw.TryLock, "TryRLock": rw.TryRLock}
		warm(t, mu)
		must(t, rw.Lock(t.Context()))
		must(t, rw.Unlock())
		asks := func(name, want string, got bool) {
			t.Helper()
			srv.ResetOps()
			ok, err := tries[name](t.Context())
			ops := names(requests(srv, live(t, m).ID()))
			// The two reads go out together, either first.
			ops = strings.Replace(ops, "getData getChildren2", "getChildren2 getData", 1)
			if ok != got || err != nil || ops != want {
				t.Errorf("%s: %v, %v, and asked %q, want %v and %q", name, ok, err, ops, got, want)
			}
		}
		asks("TryLock", "multi", true)
		unlock(t, mu)
		asks("RWMutex.TryLock", "multi", true)
		must(t, rw.Unlock())
		asks("TryRLock", "multi", true)
		asks("TryRLock", "", true)
		must(t, rw.RUnlock())
		must(t, rw.RUnlock())

		other := srv.Connect(t)
		lock(t, zksync.NewMutex(other, path))
		must(t, zksync.NewRWMutex(other, "/rw").Lock(t.Context()))
		for name := range tries {
			asks(name, "multi getChildren2 getData delete", false)
		}
	})
}
