package session_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// fired fails the test unless a watch has fired with an event of one of the types.
func fired(t *testing.T, w *session.Watch, what string, want ...zk.EventType) {
	t.Helper()
	synctest.Wait()
	select {
	case ev := <-w.Events():
		for _, typ := range want {
			if ev.Type == typ {
				return
			}
		}
		t.Errorf("%s: event %+v, want one of %v", what, ev, want)
	default:
		t.Errorf("%s: the change was never reported", what)
	}
}

// A change is reported after a reconnect, also if connections break again and again between the answer to the sync
// and the events of setWatches.
func TestNoChangeIsMissedWhenSetWatchesIsLost(t *testing.T) {
	for lost := range 4 {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			ctx := t.Context()
			s := current(t, connect(t, srv, three))
			for _, path := range []string{"/data", "/gone", "/dir"} {
				srv.Create(path, nil)
			}
			_, _, data, err := s.WatchData(ctx, "/data")
			if err != nil {
				t.Fatal(err)
			}
			_, _, gone, err := s.WatchData(ctx, "/gone")
			if err != nil {
				t.Fatal(err)
			}
			_, _, list, err := s.WatchChildren(ctx, "/dir")
			if err != nil {
				t.Fatal(err)
			}
			_, _, come, err := s.WatchExists(ctx, "/come")
			if err != nil {
				t.Fatal(err)
			}
			srv.Inject(zkserver.Fault{Op: zkserver.OpSetWatches, At: zkserver.BeforeCommit, Do: zkserver.Disconnect, Times: lost})
			release := make(chan struct{})
			srv.Inject(zkserver.Fault{Op: zkserver.OpConnect, Do: zkserver.Hold(release)})
			srv.Disconnect(s.ID())
			synctest.Wait()
			srv.Set("/data", []byte("new"))
			srv.Delete("/gone")
			srv.Create("/dir/child", nil)
			srv.Create("/come", nil)
			close(release)
			time.Sleep(time.Minute)
			if s.Err() != nil {
				t.Fatal(s.Err())
			}
			what := fmt.Sprintf("setWatches lost %d times: ", lost)
			fired(t, data, what+"data", zk.EventNodeDataChanged)
			fired(t, gone, what+"deletion", zk.EventNodeDeleted)
			fired(t, list, what+"children", zk.EventNodeChildrenChanged)
			fired(t, come, what+"creation", zk.EventNodeCreated)
		})
	}
}

// The answer to a batch of setWatches hides no event of a later batch.
func TestNoChangeIsMissedBetweenBatchesOfSetWatches(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		// More than two batches of 128 KiB.
		var watches []*session.Watch
		long := strings.Repeat("x", 1000)
		for i := range 300 {
			path := fmt.Sprintf("/%s%03d", long, i)
			srv.Create(path, nil)
			_, _, w, err := s.WatchData(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			watches = append(watches, w)
		}
		srv.ResetOps()
		// Two batches are answered, the third one is lost with the connection.
		srv.Inject(zkserver.Fault{Op: zkserver.OpSetWatches, Nth: 3, At: zkserver.BeforeCommit, Do: zkserver.Disconnect})
		release := make(chan struct{})
		srv.Inject(zkserver.Fault{Op: zkserver.OpConnect, Do: zkserver.Hold(release)})
		srv.Disconnect(s.ID())
		synctest.Wait()
		for i := range watches {
			srv.Set(fmt.Sprintf("/%s%03d", long, i), []byte("new"))
		}
		close(release)
		time.Sleep(time.Minute)
		if n := count(srv.Ops(), zkserver.OpSetWatches); n != 4 {
			t.Fatalf("%d requests to arm watches, want three batches, and one of them twice", n)
		}
		for i, w := range watches {
			fired(t, w, fmt.Sprint("watch ", i), zk.EventNodeDataChanged)
		}
	})
}

// A change between a read and a second break is reported, although the read was answered and setWatches was not.
func TestAReadBesideAnUnansweredSetWatches(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		ctx := t.Context()
		s := current(t, connect(t, srv, three))
		srv.Create("/old", nil)
		srv.Create("/new", nil)
		_, _, old, err := s.WatchData(ctx, "/old")
		if err != nil {
			t.Fatal(err)
		}
		srv.Inject(zkserver.Fault{Op: zkserver.OpSetWatches, At: zkserver.AfterCommit, Do: zkserver.Drop})
		srv.Disconnect(s.ID())
		synctest.Wait()
		srv.Set("/old", []byte("x"))
		// The answer to this read follows the lost one, and ends the connection.
		if _, _, _, err := s.WatchData(ctx, "/new"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		fired(t, old, "old", zk.EventNodeDataChanged)
	})
}

// The removal of watches goes on after connections broke during a removal, so that the number of watches on the server
// stays bounded.
func TestRemovalOfWatchesGoesOnAfterBrokenConnections(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		abandon := func(round, n int) {
			for i := range n {
				_, _, w, err := s.WatchExists(t.Context(), fmt.Sprintf("/r%d-%d", round, i))
				if err != nil {
					t.Fatal(err)
				}
				w.Stop()
			}
			synctest.Wait()
		}
		for round := range 5 {
			srv.Inject(zkserver.Fault{Op: zkserver.OpRemoveWatches, At: zkserver.BeforeCommit, Do: zkserver.Disconnect})
			abandon(round, 100)
			time.Sleep(time.Minute)
		}
		abandon(5, 5000)
		time.Sleep(2 * time.Hour)
		abandon(6, 5000)
		if n := srv.WatchesOf(s.ID()); n > 64 {
			t.Errorf("%d watches on the server, want at most 64", n)
		}
	})
}

// A watch whose removal a server refuses is removed later, and the refusals cause no flood of requests.
func TestRemovalOfWatchesIsRepeatedAfterRefusals(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		abandon := func(round, n int) {
			for i := range n {
				_, _, w, err := s.WatchExists(t.Context(), fmt.Sprintf("/r%d-%d", round, i))
				if err != nil {
					t.Fatal(err)
				}
				w.Stop()
			}
			synctest.Wait()
		}
		refused := srv.Inject(zkserver.Fault{Op: zkserver.OpRemoveWatches, Times: -1, Do: zkserver.Error(-1)})
		for round := range 10 {
			abandon(round, 500)
			time.Sleep(10 * time.Minute)
		}
		// At most 64 requests are in flight, and each pause is longer.
		if n := count(srv.Ops(), zkserver.OpRemoveWatches); n > 10*64 {
			t.Errorf("%d requests to remove watches were refused, want a few", n)
		}
		if n := srv.WatchesOf(s.ID()); n != 5000 {
			t.Errorf("%d watches on the server, want 5000", n)
		}
		refused.Remove()
		time.Sleep(2 * time.Hour)
		abandon(10, 5000)
		if n := srv.WatchesOf(s.ID()); n > 64 {
			t.Errorf("%d watches on the server, want at most 64", n)
		}
	})
}

// A change is reported after a reconnect, although a server refuses setWatches or SASL and the connection still has the
// answer to a later request in its buffer.
func TestNoChangeIsMissedWhenSetWatchesIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		cfg     zkserver.Config
		opts    []session.Option
		refusal []zkserver.Fault
	}{
		// The delay makes the answers to setWatches and to Get arrive together.
		"setWatches": {refusal: []zkserver.Fault{
			{Op: zkserver.OpSetWatches, Do: zkserver.Delay(10 * time.Millisecond)},
			{Op: zkserver.OpSetWatches, Do: zkserver.Error(-1)},
		}},
		"SASL": {
			cfg:     zkserver.Config{SASLUsers: saslUsers},
			opts:    []session.Option{session.WithSASL(session.DigestMD5("bob", "secret"))},
			refusal: []zkserver.Fault{{Op: zkserver.OpSASL, Do: zkserver.Error(-1)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				s := current(t, connect(t, srv, three, c.opts...))
				srv.Create("/n", nil)
				_, _, w, err := s.WatchData(t.Context(), "/n")
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range c.refusal {
					srv.Inject(f)
				}
				release := make(chan struct{})
				srv.Inject(zkserver.Fault{Op: zkserver.OpConnect, Do: zkserver.Hold(release)})
				srv.Disconnect(s.ID())
				synctest.Wait()
				srv.Set("/n", []byte("new"))
				close(release)
				if _, _, err := s.Get(t.Context(), "/n"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				fired(t, w, "data", zk.EventNodeDataChanged)
			}, zksynctest.WithConfig(c.cfg))
		})
	}
}

// The requests that arm watches again are within WithMaxRequest, and a read whose watch could not be armed again ends
// with ErrTooLarge.
func TestSetWatchesIsWithinMaxRequest(t *testing.T) {
	const limit = 32 << 10
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three, session.WithMaxRequest(limit))
		s := current(t, m)
		var watches []*session.Watch
		watch := func(path string) {
			_, _, w, err := s.WatchExists(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			watches = append(watches, w)
		}
		for i := range 100 {
			watch(fmt.Sprintf("/%s%03d", strings.Repeat("x", 1000), i))
		}
		// The header, the zxid, the lengths of three lists and the length of the path have 32 bytes.
		longest := "/" + strings.Repeat("y", limit-32-1)
		watch(longest)
		conn := s.Connection()
		if _, _, _, err := s.WatchExists(t.Context(), longest+"y"); session.ClassOf(err) != session.ClassTooLarge {
			t.Errorf("a watch that no setWatches can arm: %v", err)
		}
		in := inbox(t, s)
		in.Exists(longest+"y", "inbox")
		if got := receive(t, in, 1)[0]; !strings.Contains(got, session.ErrTooLarge.Error()) {
			t.Errorf("delivered %q, want ErrTooLarge", got)
		}
		if _, _, err := s.Exists(t.Context(), longest+"y"); err != nil || s.Connection() != conn {
			t.Errorf("without a watch: %v, on connection %d after %d", err, s.Connection(), conn)
		}
		srv.Disconnect(s.ID())
		time.Sleep(time.Hour)
		if n := count(srv.Ops(), zkserver.OpConnect); n > 2 || m.State() != session.Connected {
			t.Errorf("%d connections in an hour, state %v", n, m.State())
		}
		if n := srv.WatchesOf(s.ID()); n != len(watches) {
			t.Errorf("%d watches on the server, want %d", n, len(watches))
		}
	}, zksynctest.WithConfig(zkserver.Config{MaxFrame: limit}))
}
