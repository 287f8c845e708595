package session_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A closeBreaker breaks once in place of sending closeSession.
type closeBreaker struct {
	net.Conn
	armed *atomic.Bool
}

func (c closeBreaker) Write(p []byte) (int, error) {
	const opAt = 8 // behind the length and the xid
	if len(p) >= opAt+4 && zkserver.OpCode(int32(binary.BigEndian.Uint32(p[opAt:]))) == zkserver.OpCloseSession && c.armed.CompareAndSwap(true, false) {
		c.Conn.Close()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

// Close closes the session on a real server that demands credentials, although the first connection breaks.
func TestCloseOnARealServerThatDemandsCredentials(t *testing.T) {
	bounds.Long(t)
	e := zksynctest.RealZooKeeper(t, 1, zksynctest.RealProperty("enforce.auth.enabled", "true"), zksynctest.RealProperty("enforce.auth.schemes", "digest"))
	auth := session.WithAuth("digest", []byte("u:p"))
	var armed atomic.Bool
	m := e.Connect(t, auth, session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return closeBreaker{c, &armed}, nil
	}))
	create(t, current(t, m), "/lock", zk.FlagEphemeral)
	armed.Store(true)
	within(t, 1500*time.Millisecond, "Close", func() { m.Close() })
	if armed.Load() {
		t.Fatal("the connection has not broken")
	}
	if ok, _, err := current(t, e.Connect(t, auth)).Exists(t.Context(), "/lock"); ok || err != nil {
		t.Errorf("the znode exists: %v, %v", ok, err)
	}
}
