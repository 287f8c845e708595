package zksynctest_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// The connection string of an ensemble has the address of each endpoint, in order, and works with any client.
func TestServersOfAnEnsemble(t *testing.T) {
	e := zksynctest.StartEnsemble(t, 3)
	addrs := strings.Split(e.Servers(), ",")
	if len(addrs) != 3 {
		t.Fatalf("%q", addrs)
	}
	connect := func(servers string) *session.Manager {
		t.Helper()
		m, err := session.Connect(t.Context(), servers)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	for i, addr := range addrs {
		if addr != e.Addr(i+1) {
			t.Errorf("%s is not that of endpoint %d, %s", addr, i+1, e.Addr(i+1))
		}
		if at := endpointOf(t, e, connect(addr)); at != i+1 {
			t.Errorf("%s leads to endpoint %d, want %d", addr, at, i+1)
		}
	}
	m := connect(e.Servers())
	old := endpointOf(t, e, m)
	e.Kill(old)
	if at := endpointOf(t, e, m); at == old {
		t.Errorf("still at endpoint %d", at)
	}
}

// A paused endpoint keeps its connections and accepts new ones, and answers them when it goes on.
func TestAPausedEndpointKeepsItsConnections(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		e := zksynctest.StartEnsemble(t, 3)
		m := e.ConnectTo(t, 1, session.WithTimeout(40*time.Second))
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		changes := m.States(t.Context())
		<-changes
		e.Pause(1)
		late, err := e.Dial(t.Context(), "tcp", e.Endpoint(1).Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer late.Close()
		if _, err := late.Write(append([]byte{0, 0, 0, 44}, make([]byte, 44)...)); err != nil {
			t.Fatal(err)
		}
		_ = late.SetReadDeadline(time.Now().Add(3 * time.Second))
		if n, err := late.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%d bytes, %v from an endpoint that is paused", n, err)
		}
		e.Resume(1)
		if err := s.Sync(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		_ = late.SetReadDeadline(time.Now().Add(3 * time.Second))
		if _, err := late.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
		select {
		case st := <-changes:
			t.Errorf("%v: the pause was not so long", st)
		default:
		}
	})
}
