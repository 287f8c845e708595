package zkserver_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// start runs a server until the end of the test.
func start(t testing.TB, cfg zkserver.Config) *zkserver.Server {
	t.Helper()
	s, err := zkserver.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// dial connects go-zookeeper's client in memory and waits for its session.
func dial(t testing.TB, s *zkserver.Server, timeout time.Duration) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect([]string{"127.0.0.1:2181"}, timeout,
		zk.WithLogger(quiet{}),
		zk.WithDialer(func(network, address string, _ time.Duration) (net.Conn, error) {
			return s.Dial(context.Background(), network, address)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	for ev := range events {
		if ev.State == zk.StateHasSession {
			break
		}
	}
	return conn
}

// An unchanged go-zookeeper client works with the server in a bubble.
func TestStockClientInABubble(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{})
		a, b := dial(t, s, 10*time.Second), dial(t, s, 10*time.Second)

		path, err := a.Create("/lock", []byte("x"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		if err != nil || path != "/lock" {
			t.Fatalf("Create: %q, %v", path, err)
		}
		ok, _, gone, err := b.ExistsW("/lock")
		if err != nil || !ok {
			t.Fatalf("ExistsW: %v, %v", ok, err)
		}
		time.Sleep(time.Hour) // of fake time, with pings
		if err := s.ExpireSession(a.SessionID()); err != nil {
			t.Fatal(err)
		}
		if ev := <-gone; ev.Type != zk.EventNodeDeleted {
			t.Fatalf("event %v", ev)
		}
		if _, err := b.Multi(
			&zk.CreateRequest{Path: "/m", Acl: zk.WorldACL(zk.PermAll)},
			&zk.SetDataRequest{Path: "/m", Data: []byte("1"), Version: 0},
			&zk.CheckVersionRequest{Path: "/m", Version: 1},
			&zk.DeleteRequest{Path: "/m", Version: 1},
		); err != nil {
			t.Fatal(err)
		}
	})
}

// An unchanged go-zookeeper client works with the server over TCP and reconnects after a restart.
func TestStockClientOverTCP(t *testing.T) {
	s := start(t, zkserver.Config{})
	addr, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn, _, err := zk.Connect([]string{addr.String()}, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		names, _, err := conn.Children("/")
		if err == nil && len(names) == 2 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v, %v", names, err)
		}
	}
}
