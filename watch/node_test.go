package watch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
)

// Node reports the present state, and each creation, change and deletion.
func TestNodeFollowsCreationChangeAndRemoval(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		m := srv.Connect(t)
		path := servers.Path(t)
		s := live(t, m)
		st := watch.Node(t.Context(), m, path)
		if got := next(t, st); got.Exists || got.Path != path {
			t.Fatalf("first state %+v, want an absent %s", got, path)
		}
		for i := range 3 {
			_, err := s.Create(t.Context(), path, []byte("new"), 0)
			must(t, err)
			got := next(t, st)
			if !got.Exists || string(got.Data) != "new" || got.Stat.Czxid != got.Stat.Mzxid {
				t.Fatalf("round %d: after creation %+v", i, got)
			}
			created := got.Stat.Czxid
			_, err = s.Set(t.Context(), path, []byte("set"), -1)
			must(t, err)
			if got = next(t, st); string(got.Data) != "set" || got.Stat.Version != 1 || got.Stat.Czxid != created {
				t.Fatalf("round %d: after a change %+v", i, got)
			}
			must(t, s.Delete(t.Context(), path, -1))
			if got = next(t, st); got.Exists || got.Data != nil {
				t.Fatalf("round %d: after removal %+v", i, got)
			}
		}
	})
}

// After a reconnect Node reports a change, and a znode that was deleted and created again, and nothing if nothing
// changed.
func TestNodeToldWhatChangedWhileDisconnected(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		must(t, srv.Create("/a", []byte("x")))
		st := watch.Node(t.Context(), m, "/a")
		first := next(t, st)
		id := live(t, m).ID()

		// Nothing changes: nothing is told, over a lost connection and a lost
		// session alike.
		must(t, srv.Disconnect(id))
		none(t, st)
		must(t, srv.ExpireSession(id))
		none(t, st)
		if now := live(t, m).ID(); now == id {
			t.Fatal("the session was not lost")
		}

		for _, lose := range []func(int64) error{srv.Disconnect, srv.ExpireSession} {
			unseen(t, srv, m, lose, func() {
				synctest.Wait()
				must(t, srv.Delete("/a"))
				must(t, srv.Create("/a", []byte("x")))
			})
			got := next(t, st)
			if !got.Exists || got.Stat.Version != first.Stat.Version || got.Stat.Czxid <= first.Stat.Czxid {
				t.Fatalf("made again with the same version: told %+v after %+v", got.Stat, first.Stat)
			}
			none(t, st)
			first = got
		}
	})
}

// A stream never reports an older state after a newer one, even if the next session is opened at another server.
func TestNodeNeverGoesBack(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		must(t, srv.Create("/a", []byte("0")))
		st := watch.Node(t.Context(), m, "/a")
		last := next(t, st).Stat.Mzxid
		for i := range 20 {
			id := live(t, m).ID()
			srv.Lag(id)
			must(t, srv.Set("/a", fmt.Append(nil, i)))
			must(t, srv.Disconnect(id))
			if i%2 == 1 {
				must(t, srv.ExpireSession(id))
			}
			got := next(t, st)
			if got.Stat.Mzxid <= last || string(got.Data) != fmt.Sprint(i) {
				t.Fatalf("round %d: %q with zxid %#x after %#x", i, got.Data, got.Stat.Mzxid, last)
			}
			last = got.Stat.Mzxid
		}
	})
}

// The first event of a stream is the present state, which includes the caller's own writes.
func TestNodeShowsOwnWritesToNewStreams(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		m := srv.Connect(t)
		s := live(t, m)
		path := servers.Path(t)
		_, err := s.Create(t.Context(), path, nil, 0)
		must(t, err)
		// Another stream keeps the source busy all the time.
		watch.Node(t.Context(), m, path)
		for i := range 300 {
			want := fmt.Sprint(i)
			_, err := s.Set(t.Context(), path, []byte(want), -1)
			must(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			if got := next(t, watch.Node(ctx, m, path)); string(got.Data) != want {
				t.Fatalf("%q was written, and a new stream begins with %q", want, got.Data)
			}
			cancel()
		}
	})
}

// The first event of a stream includes the caller's own writes, also while other clients write.
func TestNodeShowsOwnWritesInACrowd(t *testing.T) {
	srv := zksynctest.Start(t)
	m := srv.Connect(t)
	s := live(t, m)
	must(t, srv.Create("/a", nil))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 150 {
				stat, err := s.Set(t.Context(), "/a", nil, -1)
				if err != nil {
					t.Error(err)
					return
				}
				ctx, cancel := context.WithCancel(t.Context())
				if got := <-watch.Node(ctx, m, "/a").Events(); got.Stat.Version < stat.Version {
					t.Errorf("version %d was written, and a new stream begins with %d", stat.Version, got.Stat.Version)
				}
				cancel()
			}
		})
	}
	wg.Wait()
}

// A slow reader of a stream gets the newest state and blocks no other reader.
func TestNodeSlowReaderGetsTheNewest(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		st := watch.Node(t.Context(), m, "/a")
		synctest.Wait()
		must(t, srv.Create("/a", nil))
		for i := range 100 {
			must(t, srv.Set("/a", fmt.Append(nil, i)))
			synctest.Wait()
		}
		if got := next(t, st); string(got.Data) != "99" {
			t.Errorf("a slow reader is told %q first, want the newest", got.Data)
		}
		none(t, st)
		// A znode that was created and deleted between two reads is no change of
		// absence.
		must(t, srv.Delete("/a"))
		next(t, st)
		for range 3 {
			must(t, srv.Create("/a", nil))
			synctest.Wait()
			must(t, srv.Delete("/a"))
			synctest.Wait()
		}
		none(t, st)
	})
}

// A stream ends if its path is invalid or may not be read, and Err names the reason and the path.
func TestNodeThatCannotBeFollowed(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		s := live(t, m)
		_, err := s.Create(t.Context(), "/secret", nil, 0, zk.DigestACL(zk.PermAll, "joe", "x")...)
		must(t, err)
		closed := srv.Connect(t)
		must(t, closed.Close())
		cause := errors.New("shutting down")
		gone, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		for _, test := range []struct {
			name string
			ctx  context.Context
			m    *session.Manager
			path string
			want []error
		}{
			{"invalid path", t.Context(), m, "/a//b", []error{session.ErrInvalidPath, zk.ErrInvalidPath}},
			{"no path", t.Context(), m, "", []error{session.ErrInvalidPath}},
			{"may not be read", t.Context(), m, "/secret", []error{zk.ErrNoAuth}},
			{"manager closed", t.Context(), closed, "/a", []error{session.ErrClosed}},
			{"ctx over", gone, m, "/a", []error{context.Canceled, cause}},
		} {
			err := ended(t, watch.Node(test.ctx, test.m, test.path))
			for _, want := range test.want {
				if !errors.Is(err, want) {
					t.Errorf("%s: Err is %v, want %v", test.name, err, want)
				}
			}
			if test.name == "may not be read" {
				if err := ended(t, watch.Children(test.ctx, test.m, test.path)); !errors.Is(err, zk.ErrNoAuth) {
					t.Errorf("%s: Err of Children is %v", test.name, err)
				}
			}
		}
	})
}

// A stream ends when its Manager is closed.
func TestNodeEndsWithItsManager(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		var streams []*watch.Stream[watch.State]
		for range 10 {
			streams = append(streams, watch.Node(t.Context(), m, "/a"))
		}
		next(t, streams[0])
		must(t, m.Close())
		for _, st := range streams {
			if err := ended(t, st); !errors.Is(err, session.ErrClosed) {
				t.Errorf("Err is %v, want %v", err, session.ErrClosed)
			}
		}
	})
}

// A stream reports nothing during hours without a server, and then the state.
func TestNodeSurvivesALongOutage(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		must(t, srv.Create("/a", []byte("before")))
		st := watch.Node(t.Context(), m, "/a")
		next(t, st)
		srv.Partition(live(t, m).ID())
		srv.HangHandshake(true)
		must(t, srv.Set("/a", []byte("after")))
		time.Sleep(2 * time.Hour)
		select {
		case got := <-st.Events():
			t.Fatalf("told %+v without a server", got)
		default:
		}
		srv.HangHandshake(false)
		if got := next(t, st); string(got.Data) != "after" {
			t.Errorf("told %q after the outage", got.Data)
		}
	})
}
