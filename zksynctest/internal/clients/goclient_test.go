package clients

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// patience bounds every wait for an event that must come.
const patience = 30 * time.Second

// goClient is go-zookeeper's client over connections that can be broken.
type goClient struct {
	*zk.Conn
	t      *testing.T
	states <-chan zk.Event

	mu sync.Mutex
	nc net.Conn
}

type noLog struct{}

func (noLog) Printf(string, ...any) {}

func connectGo(t *testing.T, addr string) *goClient {
	t.Helper()
	c := &goClient{t: t}
	conn, states, err := zk.Connect([]string{addr}, 20*time.Second, zk.WithLogger(noLog{}),
		zk.WithDialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
			nc, err := net.DialTimeout(network, address, timeout)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.nc = nc
			return nc, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	c.Conn, c.states = conn, states
	c.awaitState(zk.StateHasSession)
	return c
}

func (c *goClient) awaitState(want zk.State) {
	c.t.Helper()
	for {
		if got := await(c.t, c.states); got.State == want {
			return
		}
	}
}

func await[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
	}
	panic("not reached")
}

// must returns a value, and fails the test if there is an error.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func isError(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("error %v, want %v", got, want)
	}
}

var openACL = zk.WorldACL(zk.PermAll)
