package watch_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A stream goes back to no older state when a deposed leader opens the next session, which it does without a transaction if
// local sessions are enabled.
func TestNoOlderStateInALocalSessionAtADeposedLeader(t *testing.T) {
	bounds.Long(t)
	e := zksynctest.RealZooKeeper(t, 3, zksynctest.RealTickTime(time.Second), zksynctest.RealSyncLimit(40),
		zksynctest.RealProperty("initLimit", "5"), zksynctest.RealProperty("localSessionsEnabled", "true"),
		zksynctest.RealProperty("localSessionsUpgradingEnabled", "true"))
	var server atomic.Int64
	server.Store(int64(e.Followers()[0]))
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, e.Addr(int(server.Load())))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	m, err := session.Connect(ctx, "127.0.0.1:1", session.WithDialer(dial), session.WithTimeout(5*time.Second))
	must(t, err)
	defer m.Close()
	s := live(t, m)
	_, err = s.Create(ctx, "/r", []byte("1"), 0)
	must(t, err)

	old := e.Depose()
	writer := e.ConnectTo(t, e.Followers()[0])
	must(t, writer.Do(ctx, func(ctx context.Context, s *session.Session) error {
		_, err := s.Set(ctx, "/r", []byte("2"), -1)
		return err
	}))
	stream := watch.Node(ctx, m, "/r")
	for string(next(t, stream).Data) != "2" {
	}
	server.Store(int64(old)) // the only server that the client reaches
	for i := range 3 {
		e.Reset(i+1, zksynctest.Client)
	}
	<-s.Done()
	// The deposed leader answers for 40 ticks. Reads of another session show its state.
	stale, err := session.Connect(ctx, e.Addr(old), session.WithTimeout(5*time.Second))
	must(t, err)
	defer stale.Close()
	data, _, err := live(t, stale).Get(ctx, "/r")
	must(t, err)
	if string(data) != "1" {
		t.Fatalf("the deposed leader has %q, want the old data", data)
	}
	select {
	case st := <-stream.Events():
		t.Errorf("the stream went back to %q", st.Data)
	case <-time.After(10 * time.Second):
	}
	server.Store(int64(e.Followers()[0]))
	must(t, writer.Do(ctx, func(ctx context.Context, s *session.Session) error {
		_, err := s.Set(ctx, "/r", []byte("3"), -1)
		return err
	}))
	for {
		switch st := next(t, stream); string(st.Data) {
		case "3":
			return
		case "2":
		default:
			t.Fatalf("the stream went back to %q", st.Data)
		}
	}
}
