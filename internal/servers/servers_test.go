package servers_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/zksynctest"
)

func TestMain(m *testing.M) {
	servers.AtOnce(atOnce)
	goleak.VerifyTestMain(zksynctest.StopSharedAfter(m))
}

// Expire ends a session on both kinds of servers, and Disconnect only its connection.
func TestExpire(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		m := srv.Connect(t)
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		srv.Disconnect(t, s.ID())
		if err := s.Sync(t.Context(), "/"); err != nil {
			t.Fatal("after a disconnect:", err)
		}
		srv.Expire(t, s.ID())
		<-s.Done()
		next, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if next.ID() == s.ID() || s.Err() == nil {
			t.Errorf("session %#x after %#x, error %v", next.ID(), s.ID(), s.Err())
		}
	})
}
