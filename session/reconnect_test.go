package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// On every connection of every session the first frames are the handshake, all credentials, and a sync, regardless of
// the number of requests that wait. A session that follows another begins with a transaction in place of the sync.
func TestFirstFramesOfEveryConnection(t *testing.T) {
	for _, auth := range []int{0, 1, 2} {
		t.Run(fmt.Sprint(auth, " credentials"), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				var opts []session.Option
				for i := range auth {
					opts = append(opts, session.WithAuth("digest", fmt.Appendf(nil, "user%d:pw", i)))
				}
				m := connect(t, srv, three, opts...)
				stop := make(chan struct{})
				busy := make(chan struct{})
				for range 8 {
					go func() {
						defer func() { busy <- struct{}{} }()
						for {
							select {
							case <-stop:
								return
							default:
							}
							if s, err := m.Session(t.Context()); err == nil {
								s.Create(t.Context(), "/x-", nil, zk.FlagSequence)
								s.WatchExists(t.Context(), "/none")
							}
							time.Sleep(50 * time.Millisecond)
						}
					}()
				}
				for i := range 50 {
					id := current(t, m).ID()
					if i%5 == 0 {
						srv.ExpireSession(id)
					} else {
						srv.Disconnect(id)
					}
					time.Sleep(time.Second)
				}
				close(stop)
				for range 8 {
					<-busy
				}
				frames := map[uint64][]zkserver.OpCode{}
				opened := map[int64]uint64{} // the first connections of the sessions
				for _, op := range srv.Ops() {
					frames[op.Conn] = append(frames[op.Conn], op.Code)
					if opened[op.Session] == 0 {
						opened[op.Session] = op.Conn
					}
				}
				first := slices.Sorted(maps.Values(opened))
				if len(frames) < 40 {
					t.Errorf("%d connections, want one for each disconnect", len(frames))
				}
				for conn, got := range frames {
					if len(got) == 1 {
						continue // the session had expired
					}
					want := []zkserver.OpCode{zkserver.OpConnect}
					for range auth {
						want = append(want, zkserver.OpAuth)
					}
					if slices.Contains(first[1:], conn) {
						want = append(want, zkserver.OpMulti)
					} else {
						want = append(want, zkserver.OpSync)
					}
					if len(got) < len(want) || fmt.Sprint(got[:len(want)]) != fmt.Sprint(want) {
						t.Errorf("connection %d begins with %v, want %v", conn, got[:min(len(got), 6)], want)
					}
				}
			})
		})
	}
}

// On a new connection no request is sent before the sync is answered.
func TestNothingIsAskedBeforeTheSyncIsAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		release := make(chan struct{})
		srv.Inject(zkserver.Fault{Op: zkserver.OpSync, At: zkserver.BeforeReply, Do: zkserver.Hold(release)})
		srv.Disconnect(s.ID())
		synctest.Wait()
		done := make(chan error)
		srv.ResetOps()
		go func() { _, _, err := s.Get(t.Context(), "/"); done <- err }()
		synctest.Wait()
		for _, op := range srv.Ops() {
			if op.Code == zkserver.OpGetData {
				t.Error("a read was sent before the sync was answered")
			}
		}
		if s.Connection() != 0 {
			t.Errorf("connection %d counts as there", s.Connection())
		}
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// After a reconnect no read shows a state that is older than an earlier read, even if the new server lags.
func TestReadsNeverGoBack(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		srv.Create("/n", []byte("0"))
		for i := range 50 {
			srv.Lag(s.ID())
			srv.Set("/n", fmt.Append(nil, i+1))
			srv.Disconnect(s.ID())
			data, _, err := s.Get(t.Context(), "/n")
			if err != nil {
				t.Fatal(err)
			}
			if got, want := string(data), fmt.Sprint(i+1); got != want {
				t.Fatalf("behind a reconnect %s, want %s", got, want)
			}
		}
	})
}

// recorder keeps the first bytes that are written to a connection.
type recorder struct {
	net.Conn
	first []byte
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.first == nil {
		r.first = append(r.first, p...)
	}
	return r.Conn.Write(p)
}

// The handshake names the newest transaction that the session has seen, so that a server that is further behind refuses
// the client.
func TestHandshakeNamesWhatWasSeen(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		var conns []*recorder
		s := current(t, connect(t, srv, three, session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := srv.Dial(ctx, network, address)
			r := &recorder{Conn: conn}
			conns = append(conns, r)
			return r, err
		})))
		for range 3 {
			create(t, s, "/x-", zk.FlagSequence)
			want := srv.Zxid()
			srv.Disconnect(s.ID())
			if err := s.Sync(t.Context(), "/"); err != nil {
				t.Fatal(err)
			}
			hello := conns[len(conns)-1].first
			if got := int64(binary.BigEndian.Uint64(hello[8:])); got != want {
				t.Errorf("the handshake names transaction %#x, want %#x", got, want)
			}
		}
	})
}

// A Watch survives a reconnect: it fires for a change while the connection was down, and waits on if nothing changed.
func TestWatchesSurviveReconnects(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		ctx := t.Context()
		dir := servers.Path(t)
		wm := srv.Connect(t)
		writer := current(t, wm)
		s := current(t, srv.Connect(t, session.WithTimeout(4*time.Second)))
		create(t, writer, dir, 0)
		events := map[string]<-chan zk.Event{}
		for _, what := range []string{"set", "deleted", "same"} {
			create(t, writer, dir+"/"+what, 0)
			_, _, ch, err := s.GetW(ctx, dir+"/"+what)
			if err != nil {
				t.Fatal(err)
			}
			events[what] = ch
		}
		for _, what := range []string{"created", "absent"} {
			_, _, ch, err := s.ExistsW(ctx, dir+"/"+what)
			if err != nil {
				t.Fatal(err)
			}
			events[what] = ch
		}
		for _, what := range []string{dir, dir + "/same"} {
			_, _, ch, err := s.ChildrenW(ctx, what)
			if err != nil {
				t.Fatal(err)
			}
			events["children of "+what] = ch
		}
		before := s.Connection()
		release := make(chan struct{})
		go func() {
			// The change happens while the client is not connected.
			defer close(release)
			// The connection of the writer may break as well, and its write may be repeated.
			steps := []func(context.Context, *session.Session) error{
				func(ctx context.Context, s *session.Session) error {
					_, err := s.Set(ctx, dir+"/set", nil, -1)
					return err
				},
				func(ctx context.Context, s *session.Session) error { return s.Delete(ctx, dir+"/deleted", -1) },
				func(ctx context.Context, s *session.Session) error {
					_, err := s.Create(ctx, dir+"/created", nil, 0)
					return err
				},
			}
			for _, step := range steps {
				if err := wm.Do(ctx, step); err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNodeExists) {
					t.Error(err)
				}
			}
		}()
		srv.Disconnect(t, s.ID())
		<-release
		if err := s.Sync(ctx, "/"); err != nil {
			t.Fatal(err)
		}
		if s.Connection() == before {
			t.Fatal("not disconnected")
		}
		expect := func(what string, want zk.EventType) {
			t.Helper()
			select {
			case ev := <-events[what]:
				if ev.Type != want {
					t.Errorf("%s: %+v, want %v", what, ev, want)
				}
			case <-time.After(10 * time.Second):
				t.Errorf("%s: no event", what)
			}
		}
		expect("set", zk.EventNodeDataChanged)
		expect("deleted", zk.EventNodeDeleted)
		expect("created", zk.EventNodeCreated)
		expect("children of "+dir, zk.EventNodeChildrenChanged)
		for _, quiet := range []string{"same", "absent", "children of " + dir + "/same"} {
			select {
			case ev := <-events[quiet]:
				t.Errorf("%s: %+v though nothing changed", quiet, ev)
			default:
			}
		}
		create(t, writer, dir+"/absent", 0)
		create(t, writer, dir+"/same/child", 0)
		if _, err := writer.Set(ctx, dir+"/same", nil, -1); err != nil {
			t.Fatal(err)
		}
		expect("absent", zk.EventNodeCreated)
		expect("same", zk.EventNodeDataChanged)
		expect("children of "+dir+"/same", zk.EventNodeChildrenChanged)
	})
}

// An event that was lost with its connection arrives over the next connection, and the Watch reports the connection
// of the event.
func TestEventsLostWithTheirConnection(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		create(t, s, "/p", 0)
		create(t, s, "/p/n", 0)
		_, _, data, err := s.WatchData(t.Context(), "/p/n")
		if err != nil {
			t.Fatal(err)
		}
		_, _, list, err := s.WatchChildren(t.Context(), "/p")
		if err != nil {
			t.Fatal(err)
		}
		srv.Inject(zkserver.Fault{Path: "/p", At: zkserver.OnWatch, Do: zkserver.Disconnect})
		srv.Delete("/p/n")
		if ev := <-data.Events(); ev.Type != zk.EventNodeDeleted {
			t.Errorf("event %+v, want the removal", ev)
		}
		if ev := <-list.Events(); ev.Type != zk.EventNodeChildrenChanged {
			t.Errorf("event %+v, want the change of the list", ev)
		}
		if list.FiredOn() == list.Connection() {
			t.Error("the second event claims to have come over the connection that broke")
		}
	})
}

// Watches that do not fit into one request are armed again by several.
func TestManyWatchesAreArmedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		const n = 6000
		pad := "a-rather-long-name-for-a-znode-that-is-not-there-yet"
		for i := range n {
			if _, _, _, err := s.WatchExists(t.Context(), fmt.Sprint("/", pad, i)); err != nil {
				t.Fatal(err)
			}
		}
		srv.Disconnect(s.ID())
		if err := s.Sync(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		if got := srv.WatchesOf(s.ID()); got != n {
			t.Errorf("%d watches behind the reconnect, want %d", got, n)
		}
		if got := count(srv.Ops(), zkserver.OpSetWatches); got < 2 {
			t.Errorf("%d requests for %d bytes of paths, want several", got, n*60)
		}
	})
}
