package session_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// protectedCalls has the two calls that create a znode and determine whether the znode exists.
var protectedCalls = map[string]struct {
	op   zkserver.OpCode
	call func(context.Context, *session.Session) (string, error)
}{
	"CreateProtected": {zkserver.OpCreate, func(ctx context.Context, s *session.Session) (string, error) {
		return s.CreateProtected(ctx, "/dir/x-", []byte("data"), zk.FlagEphemeralSequential)
	}},
	"MultiProtected": {zkserver.OpMulti, func(ctx context.Context, s *session.Session) (string, error) {
		paths, _, err := s.MultiProtected(ctx,
			&zk.CheckVersionRequest{Path: "/dir", Version: -1},
			&zk.CreateRequest{Path: session.Protect("/dir/x-"), Data: []byte("data"), Flags: zk.FlagEphemeralSequential})
		return strings.Join(paths, " "), err
	}},
}

var protectedName = regexp.MustCompile(`^_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-x-[0-9]{10}$`)

// alone checks that path is the one child of /dir.
func alone(t *testing.T, srv *zksynctest.Server, path string) {
	t.Helper()
	names, _ := srv.Children("/dir")
	if len(names) != 1 || "/dir/"+names[0] != path || !protectedName.MatchString(names[0]) {
		t.Errorf("created %q, found %v, want the one, with a GUID in front", path, names)
	}
}

// CreateProtected and MultiProtected determine after a lost answer whether they succeeded, and create again only if
// the znode does not exist.
func TestProtectedCreateIsResolved(t *testing.T) {
	lookup := zkserver.Fault{Op: zkserver.OpGetChildren2, Path: "/dir", At: zkserver.BeforeReply, Do: zkserver.Disconnect}
	many := lookup
	many.Times = 5
	again := zkserver.Fault{At: zkserver.BeforeReply, Do: zkserver.Disconnect, Times: 3}
	for name, faults := range map[string][]zkserver.Fault{
		"answer lost":               {{At: zkserver.BeforeReply, Do: zkserver.Disconnect}},
		"answer dropped":            {{At: zkserver.BeforeReply, Do: zkserver.Drop}},
		"request lost":              {{At: zkserver.BeforeCommit, Do: zkserver.Disconnect}},
		"request dropped":           {{At: zkserver.BeforeCommit, Do: zkserver.Drop}},
		"answer and look-up lost":   {{At: zkserver.BeforeReply, Do: zkserver.Disconnect}, lookup},
		"answer and look-ups lost":  {{At: zkserver.BeforeReply, Do: zkserver.Disconnect}, many},
		"request and look-up lost":  {{At: zkserver.BeforeCommit, Do: zkserver.Disconnect}, lookup},
		"answers lost again":        {again, lookup},
		"request, then answer lost": {{At: zkserver.BeforeCommit, Do: zkserver.Disconnect}, {Nth: 2, At: zkserver.BeforeReply, Do: zkserver.Disconnect}},
	} {
		for kind, p := range protectedCalls {
			t.Run(kind+" "+name, func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					s := current(t, connect(t, srv, three))
					create(t, s, "/dir", 0)
					// The loss of a dropped frame shows only when the connection breaks.
					brk := time.AfterFunc(timeout, func() { srv.Disconnect(s.ID()) })
					defer brk.Stop()
					for _, f := range faults {
						if f.Op == 0 {
							f.Op = p.op
						}
						if f.Op == zkserver.OpMulti {
							f.Path = "/dir"
						}
						srv.Inject(f)
					}
					path, err := p.call(t.Context(), s)
					if err != nil {
						t.Fatal(err)
					}
					alone(t, srv, path)
					if stat := owner(t, s, path); stat != s.ID() {
						t.Errorf("owned by %#x, want %#x", stat, s.ID())
					}
				})
			})
		}
	}
}

func owner(t *testing.T, s *session.Session, path string) int64 {
	t.Helper()
	_, stat, err := s.Get(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return stat.EphemeralOwner
}

// A protected create believes an absence only behind a sync, also at a server that lags.
func TestProtectedCreateBehindAServerThatLags(t *testing.T) {
	for kind, p := range protectedCalls {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				s := current(t, connect(t, srv, three))
				create(t, s, "/dir", 0)
				for range 10 {
					srv.Inject(zkserver.Fault{Op: p.op, At: zkserver.AfterCommit, Do: zkserver.Disconnect})
					srv.Inject(zkserver.Fault{Op: p.op, At: zkserver.BeforeCommit, Do: zkserver.Call(func() {})})
					// The follower has not applied the create when the client connects to it.
					srv.Inject(zkserver.Fault{Op: zkserver.OpConnect, At: zkserver.BeforeCommit, Do: zkserver.Call(func() {
						for _, name := range children(srv, "/dir") {
							data, _ := srv.Get("/dir/" + name)
							srv.Delete("/dir/" + name)
							srv.Lag(s.ID())
							srv.Create("/dir/"+name, data)
						}
					})})
					path, err := p.call(t.Context(), s)
					if err != nil {
						t.Fatal(err)
					}
					alone(t, srv, path)
					if err := s.Delete(t.Context(), path, -1); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

func children(srv *zksynctest.Server, path string) []string {
	names, _ := srv.Children(path)
	return names
}

// A protected create that is cancelled at any step, with any answer lost, leaves no znode.
func TestNothingIsLeftOfACancelledProtectedCreate(t *testing.T) {
	ops := []zkserver.OpCode{0, zkserver.OpConnect, zkserver.OpSync, zkserver.OpGetChildren2}
	moments := []zkserver.Moment{zkserver.BeforeCommit, zkserver.AfterCommit, zkserver.BeforeReply}
	for kind, p := range protectedCalls {
		for _, op := range ops {
			for _, at := range moments {
				for _, lost := range []bool{false, true} {
					if op == 0 {
						op = p.op
					} else if !lost && op != p.op {
						continue // without a loss there is no such step
					}
					t.Run(fmt.Sprint(kind, op, at, lost), func(t *testing.T) {
						bubble(t, func(t *testing.T, srv *zksynctest.Server) {
							s := current(t, connect(t, srv, three))
							create(t, s, "/dir", 0)
							srv.ResetOps()
							ctx, cancel := context.WithCancel(t.Context())
							srv.Inject(zkserver.Fault{Session: s.ID(), Op: op, At: at, Do: zkserver.Call(func() {
								cancel()
								synctest.Wait() // the caller has gone
							})})
							if lost {
								srv.Inject(zkserver.Fault{Op: p.op, At: zkserver.BeforeReply, Do: zkserver.Disconnect})
								srv.Inject(zkserver.Fault{Op: zkserver.OpGetChildren2, Nth: 2, At: zkserver.BeforeReply, Do: zkserver.Disconnect})
								srv.Inject(zkserver.Fault{Op: zkserver.OpDelete, At: zkserver.BeforeCommit, Do: zkserver.Disconnect})
							}
							_, err := p.call(ctx, s)
							mustBe(t, err, context.Canceled)
							time.Sleep(time.Minute)
							if names := children(srv, "/dir"); len(names) > 0 {
								t.Errorf("left behind: %v\n%v", names, srv.Ops())
							}
							if s.Context().Err() != nil {
								t.Errorf("the session is lost: %v", s.Err())
							}
						})
					})
				}
			}
		}
	}
}

// CreateProtected and MultiProtected return the refusal of the server.
func TestProtectedCreateFails(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		s := current(t, srv.Connect(t))
		dir := servers.Path(t)
		_, err := s.CreateProtected(t.Context(), dir+"/x", nil, 0)
		mustBe(t, err, zk.ErrNoNode)
		_, _, err = s.MultiProtected(t.Context(), &zk.CreateRequest{Path: session.Protect(dir + "/x")})
		mustBe(t, err, zk.ErrNoNode)
		for _, ops := range [][]any{
			nil,
			{&zk.CreateRequest{Path: dir}},
			{&zk.CreateRequest{Path: session.Protect(dir)}, &zk.CreateRequest{Path: session.Protect(dir)}},
		} {
			if _, _, err := s.MultiProtected(t.Context(), ops...); err == nil || !strings.Contains(err.Error(), "exactly one") {
				t.Errorf("error %v, want one that asks for exactly one protected create", err)
			}
		}
		create(t, s, dir, 0)
		path, err := s.CreateProtected(t.Context(), dir+"/x-", []byte("data"), zk.FlagSequence)
		if err != nil {
			t.Fatal(err)
		}
		data, stat, err := s.Get(t.Context(), path)
		if err != nil || string(data) != "data" || stat.EphemeralOwner != 0 {
			t.Errorf("%q, %+v, error %v", data, stat, err)
		}
		<-s.Discard(path)
		if ok, _, err := s.Exists(t.Context(), path); ok || err != nil {
			t.Errorf("after Discard it is there: %v, %v", ok, err)
		}
		_, results, err := s.MultiProtected(t.Context(), &zk.CreateRequest{Path: session.Protect(dir + "/x-"), Flags: zk.FlagEphemeralSequential},
			&zk.CheckVersionRequest{Path: dir, Version: 77})
		mustBe(t, err, zk.ErrBadVersion)
		if len(results) != 2 || !errors.Is(results[1].Error, zk.ErrBadVersion) {
			t.Errorf("results %+v, want the second one's BadVersion", results)
		}
		if names, _, err := s.Children(t.Context(), dir); err != nil || len(names) != 0 {
			t.Errorf("children %v, error %v, want none", names, err)
		}
	})
}

// CreateProtected finds its znode after a lost answer, and a cancelled CreateProtected leaves none, in a directory that
// may not be listed, unless the znode is sequential.
func TestProtectedCreateInADirectoryThatMayNotBeListed(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		if _, err := s.Create(t.Context(), "/d", nil, 0, zk.WorldACL(zk.PermCreate|zk.PermDelete)...); err != nil {
			t.Fatal(err)
		}
		lost := zkserver.Fault{Op: zkserver.OpCreate, At: zkserver.BeforeReply, Do: zkserver.Disconnect}
		ctx, cancel := context.WithCancel(t.Context())
		srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, At: zkserver.BeforeReply, Do: zkserver.Call(cancel)})
		srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, At: zkserver.BeforeReply, Do: zkserver.Delay(time.Second)})
		srv.Inject(lost)
		_, err := s.CreateProtected(ctx, "/d/cancelled", nil, zk.FlagEphemeral)
		mustBe(t, err, context.Canceled)
		time.Sleep(time.Minute)
		if names := children(srv, "/d"); len(names) > 0 {
			t.Errorf("left by a cancelled call: %v", names)
		}
		// Neither the directory nor the second znode may be read.
		for _, acl := range [][]zk.ACL{nil, zk.WorldACL(zk.PermDelete)} {
			srv.Inject(lost)
			path, err := s.CreateProtected(t.Context(), "/d/lost", nil, zk.FlagEphemeral, acl...)
			if err != nil {
				t.Fatal(err)
			}
			mustExist(t, srv, path, true)
		}
	})
}

// Protect of a path without a slash returns a path without a slash, which a create refuses.
func TestProtectOfAnInvalidPath(t *testing.T) {
	for _, path := range []string{"", "name"} {
		mustBe(t, session.CheckPath(session.Protect(path)), session.ErrInvalidPath)
	}
}
