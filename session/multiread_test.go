package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// withoutMultiRead makes a server like ZooKeeper before 3.6.
var withoutMultiRead = zksynctest.WithConfig(zkserver.Config{Without: []zkserver.OpCode{zkserver.OpMultiRead}})

// checkMultiRead reads several znodes in one MultiRead.
func checkMultiRead(t *testing.T, m *session.Manager, path string) {
	t.Helper()
	ctx := t.Context()
	s := current(t, m)
	if err := s.MakeDir(ctx, path+"/dir"); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"/dir/b": []byte("data of b"), "/dir/a": {}, "/dir/c": nil} {
		if _, err := s.Create(ctx, path+name, data, 0); err != nil {
			t.Fatal(err)
		}
	}
	secret := append(zk.WorldACL(zk.PermAll&^zk.PermRead), zk.ACL{Perms: zk.PermAll, Scheme: "digest", ID: "a:b"})
	if _, err := s.Create(ctx, path+"/secret", []byte("x"), 0, secret...); err != nil {
		t.Fatal(err)
	}
	got, err := s.MultiRead(ctx,
		session.ReadData(path+"/dir/b"), session.ReadChildren(path+"/dir"), session.ReadData(path+"/none"),
		session.ReadData(path+"/dir/a"), session.ReadData(path+"/secret"), session.ReadData(path+"/dir/c"),
		session.ReadChildren(path+"/dir/a"), session.ReadChildren(path+"/none"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 8 {
		t.Fatalf("%d results for 8 reads", len(got))
	}
	data, stat, err := s.Get(ctx, path+"/dir/b")
	if err != nil {
		t.Fatal(err)
	}
	if r := got[0]; !bytes.Equal(r.Data, data) || !reflect.DeepEqual(r.Stat, stat) || r.Err != nil || r.Children != nil {
		t.Errorf("data: %+v, want %q and %+v", r, data, stat)
	}
	if r := got[1]; !reflect.DeepEqual(r.Children, []string{"a", "b", "c"}) || r.Err != nil || r.Data != nil {
		t.Errorf("children: %+v", r)
	}
	for i, name := range map[int]string{2: "get " + path + "/none", 7: "children " + path + "/none"} {
		if err := got[i].Err; !errors.Is(err, zk.ErrNoNode) || !strings.Contains(err.Error(), name) {
			t.Errorf("a znode that is not there: %v, want one about %q", err, name)
		}
	}
	if r := got[3]; r.Data == nil || len(r.Data) != 0 || r.Stat == nil || r.Err != nil {
		t.Errorf("empty data: %+v", r)
	}
	mustBe(t, got[4].Err, zk.ErrNoAuth)
	if r := got[5]; r.Data != nil || r.Stat == nil || r.Err != nil {
		t.Errorf("no data: %+v", r)
	}
	if r := got[6]; len(r.Children) != 0 || r.Err != nil {
		t.Errorf("no children: %+v", r)
	}
}

// A MultiRead has the result of each read, and the error of a read that is refused in its result.
func TestMultiRead(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		checkMultiRead(t, srv.Connect(t), servers.Path(t))
	})
}

// The paths of a MultiRead are relative to the chroot.
func TestMultiReadBelowAChroot(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		checkMultiRead(t, connect(t, srv, three+"/app", session.WithCreateChroot()), "/x")
		mustExist(t, srv, "/app/x/dir/b", true)
	})
}

// A MultiRead is one request.
func TestMultiReadIsOneRequest(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		reads := make([]session.Read, 1000)
		for i := range reads {
			path := fmt.Sprintf("/z%04d", i)
			srv.Create(path, []byte(path))
			reads[i] = session.ReadData(path)
		}
		srv.ResetOps()
		got, err := s.MultiRead(t.Context(), reads...)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range got {
			if want := fmt.Sprintf("/z%04d", i); string(r.Data) != want {
				t.Fatalf("result %d is %q, want %q", i, r.Data, want)
			}
		}
		if ops := srv.Ops(); len(ops) != 1 {
			t.Errorf("%d requests: %v", len(ops), ops)
		}
	})
}

// At a server without the operation, reads are sent one by one, and so are the reads of later calls.
func TestMultiReadWithoutTheOperation(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		checkMultiRead(t, m, "/x")
		checkMultiRead(t, m, "/y")
		if n := count(srv.Ops(), zkserver.OpMultiRead); n != 1 {
			t.Errorf("a server that does not know the operation was asked %d times, want once", n)
		}
	}, withoutMultiRead)
}

// A MultiRead is repeated over lost connections, and a server is taken for a server without the operation only when
// it closes the connection twice.
func TestMultiReadIsRepeated(t *testing.T) {
	for hangups, want := range map[int]int{2: 4, 3: 3} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s := current(t, connect(t, srv, three))
			srv.Create("/a", []byte("x"))
			srv.Inject(zkserver.Fault{Op: zkserver.OpMultiRead, Times: hangups, At: zkserver.BeforeReply, Do: zkserver.Disconnect})
			for range 2 {
				got, err := s.MultiRead(t.Context(), session.ReadData("/a"))
				if err != nil || string(got[0].Data) != "x" {
					t.Fatalf("%+v, %v", got, err)
				}
			}
			if n := count(srv.Ops(), zkserver.OpMultiRead); n != want {
				t.Errorf("%d hang-ups: asked %d times, want %d", hangups, n, want)
			}
		})
	}
}

// A MultiRead without reads sends no request, and an invalid MultiRead is refused before it is sent.
func TestMultiReadMisuse(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three, session.WithMaxRequest(1024)))
		srv.ResetOps()
		if got, err := s.MultiRead(t.Context()); len(got) != 0 || err != nil {
			t.Errorf("no reads: %v, %v", got, err)
		}
		_, err := s.MultiRead(t.Context(), session.ReadData("/a"), session.ReadChildren("a"))
		mustBe(t, err, session.ErrInvalidPath)
		if err != nil && !strings.Contains(err.Error(), "read 2") {
			t.Errorf("which read it was is not in %q", err)
		}
		_, err = s.MultiRead(t.Context(), session.ReadData("/"+strings.Repeat("a", 1024)))
		mustBe(t, err, session.ErrTooLarge)
		if ops := srv.Ops(); len(ops) != 0 {
			t.Errorf("sent %v", ops)
		}
	})
}

// A MultiRead that does not fit into one request is sent in several, as few as possible.
func TestMultiReadInSeveralRequests(t *testing.T) {
	for _, size := range []int{1024, 1_000_000} {
		for _, opts := range [][]zksynctest.Option{nil, {withoutMultiRead}} {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				s := current(t, connect(t, srv, three, session.WithMaxRequest(size)))
				const n = 200
				var reads []session.Read
				for i := range n {
					path := fmt.Sprintf("/%03d", i)
					if i%3 > 0 {
						create(t, s, path, 0)
					}
					if i%3 == 1 {
						reads = append(reads, session.ReadChildren(path))
					} else {
						reads = append(reads, session.ReadData(path))
					}
				}
				srv.ResetOps()
				results, err := s.MultiRead(t.Context(), reads...)
				if err != nil || len(results) != n {
					t.Fatalf("%d results, %v", len(results), err)
				}
				for i, r := range results {
					missing := errors.Is(r.Err, zk.ErrNoNode)
					if missing != (i%3 == 0) || (r.Stat != nil) != (i%3 == 2) {
						t.Errorf("read %d: %+v", i, r)
					}
				}
				// One read takes 18 bytes: a header of 9, and the length of its path, the path, and the watch.
				if want := 1 + n*18/size; opts == nil && count(srv.Ops(), zkserver.OpMultiRead) != want {
					t.Errorf("%d requests, want %d", count(srv.Ops(), zkserver.OpMultiRead), want)
				}
			}, opts...)
		}
	}
}

// A MultiRead ends with its ctx and returns the cause.
func TestMultiReadEndsWithItsContext(t *testing.T) {
	for _, opt := range []zksynctest.Option{withoutMultiRead, func(*zkserver.Config) {}} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := connect(t, srv, three)
			checkMultiRead(t, m, "/x")
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("why")
			done := make(chan error, 1)
			srv.Freeze()
			s := current(t, m)
			go func() {
				_, err := s.MultiRead(ctx, session.ReadData("/x"), session.ReadData("/y"))
				done <- err
			}()
			synctest.Wait()
			cancel(why)
			mustBe(t, <-done, why, context.Canceled)
			srv.Thaw()
		}, opt)
	}
}

// A MultiRead one by one has the refusal of a read as its result, for whatever reason the server refuses it.
func TestMultiReadWithARefusalOneByOne(t *testing.T) {
	for _, code := range []zkserver.Code{-1, -8} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s := current(t, connect(t, srv, three))
			create(t, s, "/a", 0)
			create(t, s, "/b", 0)
			srv.Inject(zkserver.Fault{Op: zkserver.OpMultiRead, Do: zkserver.Error(-6), Times: -1})
			srv.Inject(zkserver.Fault{Op: zkserver.OpGetData, Path: "/b", Do: zkserver.Error(code), Times: -1})
			results, err := s.MultiRead(t.Context(), session.ReadData("/a"), session.ReadData("/b"))
			if err != nil || results[0].Err != nil || results[1].Err == nil {
				t.Errorf("code %d: results %+v, error %v, want an error of the second read", code, results, err)
			}
		})
	}
}
