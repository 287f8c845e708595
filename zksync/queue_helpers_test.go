package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	engine "github.com/go-zksync/toolkit/zksync/internal/queue"
	"github.com/go-zksync/toolkit/zksynctest"
)

// offer puts messages into the queue at a path, named by numbers.
func offer(t testing.TB, m *session.Manager, path string, from, to int) {
	t.Helper()
	q := zksync.NewQueue(m, path)
	defer q.Close()
	var all [][]byte
	for i := from; i < to; i++ {
		all = append(all, fmt.Append(nil, i))
	}
	if err := q.PutAll(t.Context(), all...); err != nil {
		t.Fatal("PutAll:", err)
	}
}

// receive receives n messages.
func receive(t testing.TB, ch <-chan []byte, n int) []string {
	t.Helper()
	var got []string
	for range n {
		select {
		case data, ok := <-ch:
			if !ok {
				t.Fatalf("the channel was closed after %d of %d messages", len(got), n)
			}
			got = append(got, string(data))
		case <-time.After(patience):
			t.Fatalf("no message after %d of %d", len(got), n)
		}
	}
	return got
}

// numbers are the messages from one number to another.
func numbers(from, to int) []string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func want(t testing.TB, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", strings.Join(got, " "), strings.Join(want, " "))
	}
}

// leftItems are the messages at a path, and the claims on them.
func leftItems(srv *zksynctest.Server, path string) (items, claims []string) {
	names, _ := srv.Children(path)
	for _, name := range names {
		if strings.HasPrefix(name, "qn-") {
			items = append(items, name)
		}
	}
	znodes, _ := srv.Children(path + "/zksync-claims")
	for _, name := range znodes {
		if !strings.HasPrefix(name, "ledger-") {
			continue
		}
		data, _ := srv.Get(path + "/zksync-claims/" + name)
		names, err := engine.LedgerNames(data)
		if err != nil {
			panic(err)
		}
		claims = append(claims, names...)
	}
	return items, claims
}

// wantLeft fails the test if there are other messages or claims at queuePath than
// so many.
func wantLeft(t testing.TB, srv *zksynctest.Server, items, claims int) {
	t.Helper()
	i, c := leftItems(srv, queuePath)
	if len(i) != items || len(c) != claims {
		t.Errorf("%d messages and %d claims are left, want %d and %d: %.300v %.300v", len(i), len(c), items, claims, fmt.Sprint(i), fmt.Sprint(c))
	}
}

func closeQueue(t testing.TB, q interface{ Close() error }) {
	t.Helper()
	if err := q.Close(); err != nil {
		t.Error("Close:", err)
	}
}

// emptyQueue fails the test if there are messages at a path, or anything of consumers.
func emptyQueue(t testing.TB, m *session.Manager, path string) {
	t.Helper()
	s := live(t, m)
	if err := s.Sync(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	names, _, err := s.Children(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "zksync-") {
			t.Errorf("%s is left", name)
			continue
		}
		left, _, err := s.Children(t.Context(), path+"/"+name)
		// The order znode stays.
		left = slices.DeleteFunc(left, func(name string) bool { return strings.HasPrefix(name, "order-") })
		if err == nil && len(left) > 0 {
			t.Errorf("%s/%v is left", name, left)
		}
	}
}

// mortalManager connects a Manager that is gone for good when die is called, without a
// word to the server.
func mortalManager(t testing.TB, srv *zksynctest.Server) (m *session.Manager, die func()) {
	t.Helper()
	var dead atomic.Bool
	m = srv.Connect(t, session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		if dead.Load() {
			return nil, errors.New("dead")
		}
		return srv.Dial(ctx, network, address)
	}))
	return m, func() {
		dead.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if s, err := m.Session(ctx); err == nil {
			srv.Partition(s.ID())
		}
	}
}

func background(ctx context.Context, f func(context.Context) error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	synctest.Wait()
	return done
}

// removeLedgers deletes the ledgers at queuePath, and so all claims.
func removeLedgers(srv *zksynctest.Server) {
	names, _ := srv.Children(queuePath + "/zksync-claims")
	for _, name := range names {
		if strings.HasPrefix(name, "ledger-") {
			srv.Delete(queuePath + "/zksync-claims/" + name)
		}
	}
}
