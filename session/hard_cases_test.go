package session_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// No path leads out of the chroot: a path with relative or empty components is
// refused before anything is sent, by every operation. To see this test fail, remove
// the check of any operation.
func TestPathsDoNotEscapeFromTheChroot(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		for _, path := range []string{"/app", "/app/x", "/secret"} {
			if err := srv.Create(path, []byte("secret")); err != nil {
				t.Fatal(err)
			}
		}
		m := connect(t, srv, "127.0.0.1:2181/app")
		s := current(t, m)
		srv.ResetOps()
		for _, path := range []string{"..", "/..", "/../secret", "/x/../../secret", "//secret", "/./../secret", "../secret", "/x/..", "", "secret", "/../app/x"} {
			ctx := t.Context()
			errs := map[string]error{
				"MakeDir": s.MakeDir(ctx, path), "Delete": s.Delete(ctx, path, -1),
				"Sync": s.Sync(ctx, path), "SyncQuorum": s.SyncQuorum(ctx, path),
			}
			_, errs["Create"] = s.Create(ctx, path, nil, 0)
			_, errs["CreateProtected"] = s.CreateProtected(ctx, path, nil, 0)
			_, errs["Set"] = s.Set(ctx, path, nil, -1)
			_, _, errs["Get"] = s.Get(ctx, path)
			_, _, errs["Exists"] = s.Exists(ctx, path)
			_, _, errs["Children"] = s.Children(ctx, path)
			_, _, errs["ChildNames"] = s.ChildNames(ctx, path)
			_, _, _, errs["GetW"] = s.GetW(ctx, path)
			_, _, _, errs["WatchExists"] = s.WatchExists(ctx, path)
			_, _, _, errs["WatchChildren"] = s.WatchChildren(ctx, path)
			_, errs["MultiRead"] = s.MultiRead(ctx, session.ReadData("/x"), session.ReadChildren(path))
			_, errs["Multi"] = s.Multi(ctx, &zk.CreateRequest{Path: path}, &zk.CheckVersionRequest{Path: path})
			_, errs["Ephemeral"] = m.Ephemeral(ctx, path, nil)
			in := s.NewInbox()
			in.Data(path, nil)
			in.Children(path, nil)
			batch, err := in.Receive(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range batch {
				if d.Kind == session.InboxAnswer {
					errs["Inbox"] = d.Err
				}
			}
			in.Close()
			for name, err := range errs {
				if !errors.Is(err, session.ErrInvalidPath) {
					t.Errorf("%s %q: %v, want ErrInvalidPath", name, path, err)
				}
			}
			<-s.Discard(path)
			<-s.DiscardOwn(path, nil)
		}
		for _, op := range srv.Ops() {
			if !strings.HasPrefix(op.Path, "/app") && op.Path != "/" && op.Path != "" {
				t.Errorf("a request for %s", op.Path)
			}
		}
		mustExist(t, srv, "/secret", true)
	})
}

// A path outside the chroot in an answer is returned unchanged: only whole components of the chroot are cut off.
func TestPathsOutsideTheChrootStayAsTheyAre(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		h := &hostileServer{answer: func(p *hostilePeer, xid, op int32, _ []byte) bool {
			if op == opCreate {
				p.reply(xid, 0, ints(14), []byte("/application/x"))
			}
			return op == opCreate
		}}
		m, err := session.Connect(t.Context(), "127.0.0.1:2181/app", session.WithDialer(h.dial))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if path, err := current(t, m).Create(t.Context(), "/x", nil, 0); err != nil || path != "/application/x" {
			t.Errorf("created %q, error %v", path, err)
		}
	})
}

// A client follows a name whose address changes: a holder whose server has moved keeps its session and its hold.
func TestANameThatMoves(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		var mu sync.Mutex
		address := map[string]string{"zk.example.test:2181": "127.0.0.1:2181"}
		gone := map[string]bool{}
		m := connect(t, srv, "zk.example.test", session.WithDialer(func(ctx context.Context, network, name string) (net.Conn, error) {
			mu.Lock()
			at := address[name]
			dead := gone[at]
			mu.Unlock()
			if dead {
				return hang(ctx, network, at)
			}
			return srv.Dial(ctx, network, at)
		}))
		s := current(t, m)
		hold(t, s)
		for _, next := range []string{"127.0.0.2:2181", "127.0.0.3:2181", "127.0.0.1:2181"} {
			mu.Lock()
			gone = map[string]bool{address["zk.example.test:2181"]: true}
			mu.Unlock()
			srv.Disconnect(s.ID())
			time.Sleep(timeout / 5) // the DNS is late
			mu.Lock()
			address["zk.example.test:2181"] = next
			mu.Unlock()
			within(t, timeout/3, "the move", func() {
				if err := s.Sync(t.Context(), "/"); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(timeout)
			if s.Err() != nil {
				t.Fatalf("the hold is lost: %v", s.Err())
			}
		}
	})
}

// The directions in which a oneWayConn carries bytes.
const (
	bothWays int32 = iota
	onlyFromServer
	onlyToServer
)

// A oneWayConn loses the bytes of one direction without an error.
type oneWayConn struct {
	net.Conn
	way *atomic.Int32
}

func (c oneWayConn) Write(p []byte) (int, error) {
	if c.way.Load() == onlyFromServer {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c oneWayConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || c.way.Load() != onlyToServer {
			return n, err
		}
	}
}

// A session that holds something leaves a connection that carries bytes in one direction only within T/4, and an idle
// session within T. The session continues over another server. A new connection to the server that is cut off ends as
// well.
func TestOneWayConnections(t *testing.T) {
	for name, cut := range map[string]int32{"only from the server": onlyFromServer, "only to the server": onlyToServer} {
		for _, held := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					var way atomic.Int32 // of the first address
					m := connect(t, srv, "127.0.0.1:2181", session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
						conn, err := srv.Dial(ctx, network, address)
						if err != nil {
							return nil, err
						}
						return oneWayConn{conn, &way}, nil
					}))
					s := current(t, m)
					bound := timeout
					if held {
						hold(t, s)
						bound = timeout / 2
					}
					conn := s.Connection()
					way.Store(cut)
					time.Sleep(bound)
					if s.Connection() == conn {
						t.Errorf("after %v the connection is still in use", bound)
					}
					way.Store(bothWays)
					if held && s.Err() != nil {
						t.Errorf("the hold is lost: %v", s.Err())
					}
					within(t, timeout, "the recovery", func() {
						if _, _, err := current(t, m).Get(t.Context(), "/"); err != nil {
							t.Error(err)
						}
					})
				})
			})
		}
	}
}

// A quota that is exceeded refuses a create for good, with an error that says so, and the call is not repeated.
func TestAQuotaThatIsExceeded(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		h := &hostileServer{answer: func(p *hostilePeer, xid, op int32, _ []byte) bool {
			if op == opCreate || op == opMulti || op == opSet {
				p.reply(xid, -125)
				return true
			}
			return false
		}}
		s := current(t, connectTo(t, h))
		_, before := h.count()
		for name, write := range map[string]func() error{
			"create": func() error { _, err := s.Create(t.Context(), "/x", nil, 0); return err },
			"protected": func() error {
				_, err := s.CreateProtected(t.Context(), "/d/x-", nil, zk.FlagEphemeralSequential)
				return err
			},
			"set":   func() error { _, err := s.Set(t.Context(), "/x", nil, 3); return err },
			"multi": func() error { _, err := s.Multi(t.Context(), &zk.CreateRequest{Path: "/x"}); return err },
		} {
			err := write()
			if session.ClassOf(err) != session.ClassFinal || !strings.Contains(err.Error(), "quota exceeded") {
				t.Errorf("%s: class %v of %v, want a final refusal that names the quota", name, session.ClassOf(err), err)
			}
		}
		if _, after := h.count(); after-before != 4 {
			t.Errorf("%d requests for four calls", after-before)
		}
	})
}
