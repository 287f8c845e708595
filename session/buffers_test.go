package session_test

import (
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/go-zksync/toolkit/zksynctest"
)

// A connection costs little memory. Break it by a larger buffer of wire.New.
func TestConnectionsTakeLittleMemory(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		const connections = 20
		allocated := func() uint64 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.TotalAlloc
		}
		before := allocated()
		for range connections {
			if err := srv.Disconnect(s.ID()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if err := s.Sync(t.Context(), "/"); err != nil {
				t.Fatal(err)
			}
		}
		if each := (allocated() - before) / connections; each > 500<<10 {
			t.Errorf("a connection allocates %d KiB", each>>10)
		}
	})
}
