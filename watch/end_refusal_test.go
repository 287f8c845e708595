package watch_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// refusedStream begins a stream of /a, which may not be read. The refusal ends the stream when release is closed.
func refusedStream(t *testing.T) (srv *zksynctest.Server, m *session.Manager, first *watch.Stream[watch.State], release chan struct{}) {
	var n atomic.Int32
	release = make(chan struct{})
	t.Cleanup(watch.SetApplyHook(func() {
		if n.Add(1) == 2 {
			<-release
		}
	}))
	srv = zksynctest.Start(t)
	m = srv.Connect(t)
	_, err := live(t, m).Create(t.Context(), "/a", nil, 0, zk.DigestACL(zk.PermAll, "joe", "x")...)
	must(t, err)
	first = watch.Node(t.Context(), m, "/a")
	synctest.Wait()
	if n.Load() != 2 {
		t.Fatalf("%d deliveries, want the connection and the refusal", n.Load())
	}
	return srv, m, first, release
}

// A refusal that is older than a write of the caller does not end a stream that the caller begins after the write, and
// ends the streams before it (source.refuse).
func TestStreamBehindAnOlderRefusal(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		_, m, first, release := refusedStream(t)
		s := live(t, m)
		must(t, s.Delete(t.Context(), "/a", -1))
		_, err := s.Create(t.Context(), "/a", []byte("new"), 0)
		must(t, err)
		later := []*watch.Stream[watch.State]{watch.Node(t.Context(), m, "/a"), watch.Node(t.Context(), m, "/a")}
		close(release)
		if _, ok := <-first.Events(); ok || first.Err() == nil {
			t.Error("the refusal has not ended the stream before it")
		}
		for _, st := range later {
			if state, ok := <-st.Events(); !ok || string(state.Data) != "new" {
				t.Errorf("the stream after the write has %q, open %v: %v", state.Data, ok, st.Err())
			}
		}
		m.Close()
	})
}

// A stream that begins behind a refusal shows a znode that was created again between the read and the look of the
// stream (side.deliver, where a read has found no znode).
func TestStreamBehindTheRefusalOfAnEarlierZnode(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv, m, first, release := refusedStream(t)
		must(t, srv.Delete("/a"))
		srv.Inject(zksynctest.Fault{Op: zkserver.OpExists, Path: "/a", Do: zksynctest.Call(func() { must(t, srv.Create("/a", []byte("new"))) })})
		later := watch.Node(t.Context(), m, "/a")
		synctest.Wait()
		close(release)
		if _, ok := <-first.Events(); ok {
			t.Error("the refusal has not ended the stream before it")
		}
		if state, ok := <-later.Events(); !ok || string(state.Data) != "new" {
			t.Errorf("the stream behind the refusal has %q, open %v: %v", state.Data, ok, later.Err())
		}
		m.Close()
	})
}
