package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Connect fails with ErrAuthFailed if the servers refuse the credentials.
func TestUnknownSchemeEndsConnect(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		m, err := session.Connect(ctx, srv.Address(), session.WithAuth("none-such", []byte("x")))
		if err == nil {
			m.Close()
			t.Fatal("connected with a scheme that the server does not know")
		}
		mustBe(t, err, session.ErrAuthFailed, zk.ErrAuthFailed)
		if ctx.Err() != nil {
			t.Error("only because its ctx ended")
		}
	})
}

// MakeDir finds a directory that exists below a parent without the permission CREATE, also if the directory may not be
// read, and fails with ErrNoAuth if the directory does not exist.
func TestMakeDirBelowAParentWithoutCreate(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		ctx, parent := t.Context(), servers.Path(t)
		admin := current(t, srv.Connect(t, session.WithAuth("digest", []byte("admin:secret"))))
		all := zk.DigestACL(zk.PermAll, "admin", "secret")
		for _, dir := range []struct {
			path string
			acl  []zk.ACL
		}{{parent, append(zk.WorldACL(zk.PermRead), all...)}, {parent + "/open", zk.WorldACL(zk.PermAll)}, {parent + "/closed", all}} {
			if _, err := admin.Create(ctx, dir.path, nil, 0, dir.acl...); err != nil {
				t.Fatal(err)
			}
		}
		s := current(t, srv.Connect(t))
		for _, dir := range []string{"/open", "/open/sub", "/closed"} {
			if err := s.MakeDir(ctx, parent+dir); err != nil {
				t.Errorf("%s: %v", dir, err)
			}
		}
		mustBe(t, s.MakeDir(ctx, parent+"/new"), zk.ErrNoAuth)
	})
}

// The default ACL is open, and with WithAuth it gives the creator everything and other users nothing.
func TestDefaultACLKeepsStrangersOut(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		ctx := t.Context()
		dir := servers.Path(t)
		mine := srv.Connect(t, session.WithAuth("digest", []byte("me:secret")), session.WithTimeout(4*time.Second))
		s := current(t, mine)
		create(t, s, dir, 0)
		if err := s.MakeDir(ctx, dir+"/made"); err != nil {
			t.Fatal(err)
		}
		for who, opts := range map[string][]session.Option{
			"nobody":         nil,
			"wrong password": {session.WithAuth("digest", []byte("me:guess"))},
		} {
			stranger := current(t, srv.Connect(t, opts...))
			for _, path := range []string{dir, dir + "/made"} {
				if _, _, err := stranger.Get(ctx, path); !errors.Is(err, zk.ErrNoAuth) {
					t.Errorf("%s reads %s: error %v, want ErrNoAuth", who, path, err)
				}
				if _, err := stranger.Create(ctx, path+"/x", nil, 0); !errors.Is(err, zk.ErrNoAuth) {
					t.Errorf("%s creates below %s: error %v, want ErrNoAuth", who, path, err)
				}
				if _, err := stranger.CreateProtected(ctx, path+"/x", nil, 0); !errors.Is(err, zk.ErrNoAuth) {
					t.Errorf("%s creates below %s: error %v, want ErrNoAuth", who, path, err)
				}
			}
		}
		// Each later connection sends the credentials first, too.
		for range 5 {
			srv.Disconnect(t, s.ID())
			if _, err := s.Set(ctx, dir, []byte("x"), -1); err != nil && !errors.Is(err, session.ErrConnectionLost) {
				t.Errorf("after a reconnect: %v", err)
			}
		}
		srv.Expire(t, s.ID())
		<-s.Done()
		if _, _, err := current(t, mine).Get(ctx, dir); err != nil {
			t.Errorf("in the next session: %v", err)
		}
		friend := current(t, srv.Connect(t, session.WithAuth("digest", []byte("me:secret")), session.WithAuth("digest", []byte("me2:x"))))
		if err := friend.Delete(ctx, dir+"/made", -1); err != nil {
			t.Errorf("with the same credential: %v", err)
		}
		open, err := friend.Create(ctx, dir+"/open", nil, 0, zk.WorldACL(zk.PermRead)...)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := current(t, srv.Connect(t)).Get(ctx, open); err != nil {
			t.Errorf("an ACL of its own does not count: %v", err)
		}
	})
}

// Credentials that a later server refuses do not end the session: the session moves to another server.
func TestCredentialsRefusedLater(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three, session.WithAuth("digest", []byte("me:secret")))
		s := current(t, m)
		srv.Inject(zksynctest.Fault{Op: 100, Do: zksynctest.Error(-115), Times: 3})
		srv.Disconnect(s.ID())
		if _, _, err := s.Get(t.Context(), "/"); err != nil {
			t.Error(err)
		}
		if current(t, m) != s {
			t.Error("the session was given up")
		}
	})
}

// An internal error of a server in answer to a credential ends that connection, and not Connect (judgesCredentials).
func TestAnInternalErrorAtCredentialsIsNoRefusal(t *testing.T) {
	for op, opt := range map[zkserver.OpCode]session.Option{
		zkserver.OpAuth: session.WithAuth("digest", []byte("a:b")),
		zkserver.OpSASL: session.WithSASL(session.DigestMD5("bob", "secret")),
	} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			srv.Inject(zkserver.Fault{Op: op, Do: zkserver.Error(-1), Times: 5})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			m, err := session.Connect(ctx, three, session.WithDialer(srv.Dial), opt)
			if err != nil {
				t.Errorf("%v: %v (%v)", op, err, session.ClassOf(err))
				return
			}
			m.Close()
		}, zksynctest.WithConfig(zkserver.Config{SASLUsers: saslUsers}))
	}
}

// The error of a denied user of the scheme digest says that a wrong password is another identity, and the error of a
// client without such a user does not.
func TestADeniedUserLearnsOfThePassword(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		owner := current(t, connect(t, srv, three, session.WithAuth("digest", []byte("app:secret"))))
		create(t, owner, "/a", 0)
		for auth, want := range map[string]bool{"app:guess": true, "": false} {
			var opts []session.Option
			if auth != "" {
				opts = append(opts, session.WithAuth("digest", []byte(auth)))
			}
			_, _, err := current(t, connect(t, srv, three, opts...)).Get(t.Context(), "/a")
			mustBe(t, err, zk.ErrNoAuth)
			if got := strings.HasSuffix(err.Error(), "(with another password digest:app is another identity)"); got != want || strings.Contains(err.Error(), "guess") {
				t.Errorf("credentials %q: error %v; it tells of the password: %v, want %v", auth, err, got, want)
			}
		}
	})
}
