package watch_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
)

// plant makes a subtree of n znodes and returns their paths.
func plant(t testing.TB, s *session.Session, root string, n int) []string {
	t.Helper()
	paths := []string{root}
	_, err := s.Create(t.Context(), root, nil, 0)
	must(t, err)
	for d := 0; len(paths) < n; d++ {
		dir := fmt.Sprintf("%s/%d", root, d)
		paths = append(paths, dir)
		ops := []any{&zk.CreateRequest{Path: dir}}
		for i := range min(99, n-len(paths)) {
			path := fmt.Sprintf("%s/%d", dir, i)
			paths = append(paths, path)
			ops = append(ops, &zk.CreateRequest{Path: path, Data: []byte("a value of a common size, as a host and a port")})
		}
		_, err := s.Multi(t.Context(), ops...)
		must(t, err)
	}
	return paths
}

// byHand reads data and children of paths, with watches, as fast as a session
// can be asked: every request is written before the first answer is waited for.
// It speaks the protocol itself, so that nothing of ours is in the way.
func byHand(t testing.TB, address string, paths []string) time.Duration {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	must(t, err)
	defer conn.Close()
	be := binary.BigEndian
	frame := func(b []byte, op int32, xid int, path string) []byte {
		b = be.AppendUint32(b, uint32(4+4+4+len(path)+1))
		b = be.AppendUint32(b, uint32(xid))
		b = be.AppendUint32(b, uint32(op))
		b = be.AppendUint32(b, uint32(len(path)))
		return append(append(b, path...), 1)
	}
	receive := func() {
		var head [4]byte
		_, err := io.ReadFull(conn, head[:])
		must(t, err)
		_, err = io.CopyN(io.Discard, conn, int64(be.Uint32(head[:])))
		must(t, err)
	}
	hello := be.AppendUint32(nil, 44)
	hello = append(hello, make([]byte, 4+8)...)
	hello = be.AppendUint32(hello, 10_000)
	hello = append(hello, make([]byte, 8)...)
	hello = be.AppendUint32(hello, 16)
	hello = append(hello, make([]byte, 16)...)
	_, err = conn.Write(hello)
	must(t, err)
	receive()

	start := time.Now()
	var all []byte
	for i, path := range paths {
		all = frame(frame(all, 4, 2*i+1, path), 12, 2*i+2, path)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := conn.Write(all); err != nil {
			t.Error(err)
		}
	})
	for range 2 * len(paths) {
		receive()
	}
	wg.Wait()
	return time.Since(start)
}

// load mirrors root by a session of its own.
func load(t testing.TB, m *session.Manager, root string, n int) time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	live(t, m)
	start := time.Now()
	c := watch.Tree(ctx, m, root)
	must(t, c.WaitSynced(ctx))
	took := time.Since(start)
	if c.Len() != n {
		t.Fatalf("%d znodes in the mirror, want %d", c.Len(), n)
	}
	return took
}

// byCalls reads the same by goroutines that share a session.
func byCalls(t testing.TB, s *session.Session, paths []string) time.Duration {
	t.Helper()
	start := time.Now()
	var wg sync.WaitGroup
	const lanes = 256
	for lane := range lanes {
		wg.Go(func() {
			for i := lane; i < len(paths); i += lanes {
				_, _, _, err := s.WatchData(t.Context(), paths[i])
				if err == nil {
					_, _, _, err = s.WatchChildren(t.Context(), paths[i])
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// A Cache loads ten thousand znodes in at most three times the time that the same reads take without it.
func TestTreeLoadsTenThousand(t *testing.T) {
	const n = 10_000
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		root := servers.Path(t)
		paths := plant(t, live(t, srv.Connect(t)), root, n)
		fresh := func() *session.Manager {
			m, err := session.Connect(t.Context(), srv.Address())
			must(t, err)
			live(t, m)
			return m
		}
		// A real server is the bottleneck for every client. The embedded server answers
		// a client that ignores the answers faster than any client can read them, so
		// there the comparison is with a client that uses the answers.
		onReal := strings.HasSuffix(t.Name(), "/ZooKeeper")
		// The fastest round counts, since other tests share the machine.
		hand, tree := time.Hour, time.Hour
		for round := 0; round < 1 || tree > 3*hand && round < 10; round++ {
			if onReal {
				hand = min(hand, byHand(t, srv.Address(), paths))
			} else {
				m := fresh()
				hand = min(hand, byCalls(t, live(t, m), paths))
				must(t, m.Close())
			}
			m := fresh()
			tree = min(tree, load(t, m, root, n))
			must(t, m.Close())
		}
		t.Logf("%d znodes: by hand %v, Tree %v, %.2f x", n, hand, tree, float64(tree)/float64(hand))
		if tree > 3*hand && !raceEnabled {
			t.Errorf("Tree has taken %v, the same reads by hand %v", tree, hand)
		}
	})
}
