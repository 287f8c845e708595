package session_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
)

// An invalid option is ErrInvalidOption before anything is sent, and the error names the option and its value.
func TestInvalidOptionsAreNamed(t *testing.T) {
	for name, test := range map[string]struct {
		opt  session.Option
		says string
	}{
		"WithTimeout":    {session.WithTimeout(0), "0s"},
		"WithTimeout ":   {session.WithTimeout(-time.Second), "-1s"},
		"WithTimeout  ":  {session.WithTimeout(1 << 62), "is not between"},
		"WithACL":        {session.WithACL(), "empty"},
		"WithACL ":       {session.WithACL(zk.ACL{Perms: 64, Scheme: "world", ID: "anyone"}), "64"},
		"WithACL  ":      {session.WithACL(zk.ACL{Perms: 1}), "scheme"},
		"WithACL   ":     {session.WithACL(zk.ACL{Perms: 1, Scheme: "world", ID: "me"}), `"me"`},
		"WithAuth":       {session.WithAuth("", nil), "scheme"},
		"WithAuth ":      {session.WithAuth("digest", make([]byte, 2<<20)), "too large"},
		"WithTLS":        {session.WithTLS(nil), "nil"},
		"WithDialer":     {session.WithDialer(nil), "nil"},
		"WithLogger":     {session.WithLogger(nil), "nil"},
		"WithMaxRequest": {session.WithMaxRequest(7), "7"},
		"WithMaxAnswer":  {session.WithMaxAnswer(7), "7"},
		"option 1":       {nil, "nil"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := session.Connect(ctx, "127.0.0.1", test.opt)
		cancel()
		mustBe(t, err, session.ErrInvalidOption)
		if err != nil && (!strings.Contains(err.Error(), strings.TrimSpace(name)) || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%v does not name %s and %s", err, name, test.says)
		}
	}
	_, err := session.Connect(t.Context(), "zk1:port")
	mustBe(t, err, session.ErrInvalidServers)
}

// ChildNames returns the same names as Children, and a caller may stop before the last name.
func TestChildNames(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		s := current(t, srv.Connect(t))
		create(t, s, "/dir", 0)
		var want []string
		for i := range 30 {
			names, stat, err := s.ChildNames(t.Context(), "/dir")
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Sorted(names); !slices.Equal(got, want) || int(stat.NumChildren) != len(want) {
				t.Fatalf("%d names %q, want %q", stat.NumChildren, got, want)
			}
			for range names {
				break
			}
			name := strings.Repeat("ä", 1+i)
			create(t, s, "/dir/"+name, 0)
			want = append(want, name)
		}
		_, _, err := s.ChildNames(t.Context(), "/none")
		mustBe(t, err, zk.ErrNoNode)
		_, _, err = s.ChildNames(t.Context(), "none")
		mustBe(t, err, session.ErrInvalidPath)
	})
}

// An invalid path or argument is refused before anything is sent, a path with ErrInvalidPath, and the error names it.
func TestInvalidArgumentsAreNamed(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		m := srv.Connect(t)
		s := current(t, m)
		for _, path := range []string{"", "x", "/x/", "//", "/x//y", "/./x", "/x/..", "/x\x00", "/x\u0007", "/\xff", "/\ufff0", "/\U0001F600"} {
			err := session.CheckPath(path)
			mustBe(t, err, session.ErrInvalidPath, zk.ErrInvalidPath)
			calls := map[string]error{"MakeDir": s.MakeDir(t.Context(), path), "Delete": s.Delete(t.Context(), path, -1), "Sync": s.Sync(t.Context(), path)}
			_, calls["Create"] = s.Create(t.Context(), path, nil, 0)
			_, calls["CreateProtected"] = s.CreateProtected(t.Context(), path, nil, 0)
			_, _, calls["Get"] = s.Get(t.Context(), path)
			_, calls["Set"] = s.Set(t.Context(), path, nil, -1)
			_, calls["Multi"] = s.Multi(t.Context(), &zk.DeleteRequest{Path: path})
			for name, err := range calls {
				if !errors.Is(err, session.ErrInvalidPath) {
					t.Errorf("%s %q: error %v, want ErrInvalidPath", name, path, err)
				}
			}
		}
		for _, flags := range []int32{-1, 5, 99} {
			_, err := s.Create(t.Context(), "/x", nil, flags)
			mustBe(t, err, zk.ErrInvalidFlags)
		}
		_, err := s.Create(t.Context(), "/x", nil, 0, zk.ACL{Perms: 99, Scheme: "world", ID: "anyone"})
		mustBe(t, err, zk.ErrInvalidACL)
		if err != nil && !strings.Contains(err.Error(), "99") {
			t.Errorf("%v does not name the value", err)
		}
		_, err = s.Multi(t.Context(), "nonsense")
		mustBe(t, err, zk.ErrBadArguments)
	})
}

// The largest request that WithMaxRequest allows is sent, and a request that is a byte larger is ErrTooLarge and is
// not sent.
func TestTooLargeRequests(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		dir := servers.Path(t)
		create(t, current(t, srv.Connect(t)), dir, 0)
		var long []zk.ACL
		for range 100 {
			long = append(long, zk.DigestACL(zk.PermAll, "user", "password")...)
		}
		for name, opts := range map[string][]session.Option{"open": nil, "long ACL": {session.WithACL(long...)}} {
			m := srv.Connect(t, opts...)
			s := current(t, m)
			before := s.Connection()
			// Halving the interval leads to the last size that goes through.
			fits, refused := 1_000_000, 1<<20
			for refused-fits > 1 {
				size := (fits + refused) / 2
				path, err := s.Create(t.Context(), dir+"/x-", make([]byte, size), zk.FlagSequence)
				switch {
				case err == nil:
					fits = size
					if err := s.Delete(t.Context(), path, -1); err != nil {
						t.Fatal(err)
					}
				case errors.Is(err, session.ErrTooLarge):
					refused = size
				default:
					t.Fatalf("%s, %d bytes: %v", name, size, err)
				}
			}
			if fits == 1_000_000 || s.Connection() != before {
				t.Errorf("%s: %d bytes fit, on connection %d after %d", name, fits, s.Connection(), before)
			}
			if _, err := s.Set(t.Context(), dir, make([]byte, 2<<20), 0); !errors.Is(err, session.ErrTooLarge) {
				t.Errorf("set: %v, want ErrTooLarge", err)
			}
			ops := make([]any, 2000)
			for i := range ops {
				ops[i] = &zk.SetDataRequest{Path: dir, Data: make([]byte, 1000), Version: -1}
			}
			if _, err := s.Multi(t.Context(), ops...); !errors.Is(err, session.ErrTooLarge) {
				t.Errorf("multi: %v, want ErrTooLarge", err)
			}
		}
	})
}

// Paths are relative to the chroot in requests, results, errors and events, WithCreateChroot creates the chroot, and
// MakeDir creates the directories above its path.
func TestChroot(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		ctx := t.Context()
		root := servers.Path(t)
		outside := current(t, srv.Connect(t))
		m, err := session.Connect(ctx, srv.Address()+root+"/app", session.WithCreateChroot())
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		s := current(t, m)
		_, err = s.Create(ctx, "/none/a", nil, 0)
		mustBe(t, err, zk.ErrNoNode)
		if err := s.MakeDir(ctx, "/dir/sub"); err != nil {
			t.Fatal(err)
		}
		if err := s.MakeDir(ctx, "/dir/sub"); err != nil {
			t.Errorf("made twice: %v", err)
		}
		if err := s.MakeDir(ctx, "/"); err != nil {
			t.Errorf("the root: %v", err)
		}
		same := func(what, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		_, _, w, err := s.WatchChildren(ctx, "/dir")
		if err != nil {
			t.Fatal(err)
		}
		path, err := s.Create(ctx, "/dir/n-", []byte("x"), zk.FlagSequence)
		if err != nil {
			t.Fatal(err)
		}
		same("created", path, "/dir/n-0000000001")
		same("event", (<-w.Events()).Path, "/dir")
		protected, err := s.CreateProtected(ctx, "/dir/p", nil, 0)
		if err != nil || !strings.HasPrefix(protected, "/dir/_c_") {
			t.Errorf("protected: %q, error %v", protected, err)
		}
		multi, err := s.Multi(ctx, &zk.CheckVersionRequest{Path: "/dir", Version: 0}, &zk.CreateRequest{Path: "/dir/m"}, &zk.SetDataRequest{Path: "/dir", Version: 0}, &zk.DeleteRequest{Path: "/dir/m"})
		if err != nil {
			t.Fatal(err)
		}
		same("multi", multi[1].String, "/dir/m")
		if multi[2].Stat == nil || multi[2].Stat.Version != 1 {
			t.Errorf("multi: %+v", multi[2])
		}
		mp, _, err := s.MultiProtected(ctx, &zk.CreateRequest{Path: session.Protect("/dir/mp")})
		if err != nil || len(mp) != 1 || !strings.HasPrefix(mp[0], "/dir/_c_") {
			t.Errorf("protected multi: %q, error %v", mp, err)
		}
		names, _, err := outside.Children(ctx, root+"/app/dir")
		if err != nil || len(names) != 4 || !slices.IsSorted(names) {
			t.Errorf("seen from outside: %v, error %v", names, err)
		}
		names, stat, err := s.Children(ctx, "/")
		if err != nil || !slices.Equal(names, []string{"dir"}) || stat.NumChildren != 1 {
			t.Errorf("children of the root: %v, %+v, error %v", names, stat, err)
		}
		_, _, err = s.Get(ctx, "/none")
		if err == nil || strings.Contains(err.Error(), root) {
			t.Errorf("error %v, want a path relative to the chroot", err)
		}
	})
}

// Data comes back as it was written, a Multi does all or nothing and reports the operation that failed, and an Error
// has the operation and the path.
func TestDataAndStats(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		ctx := t.Context()
		s := current(t, srv.Connect(t))
		dir := servers.Path(t)
		create(t, s, dir, 0)
		for i, data := range [][]byte{{}, {0}, []byte("text"), bytes.Repeat([]byte{0xff, 0}, 100_000)} {
			stat, err := s.Set(ctx, dir, data, int32(i))
			if err != nil {
				t.Fatal(err)
			}
			got, read, err := s.Get(ctx, dir)
			if err != nil || !bytes.Equal(got, data) || *read != *stat || int(stat.DataLength) != len(data) || stat.Version != int32(i)+1 {
				t.Errorf("%d bytes, %+v, %+v, error %v", len(got), read, stat, err)
			}
		}
		ok, stat, err := s.Exists(ctx, dir)
		if err != nil || !ok || stat.Version != 4 {
			t.Errorf("%v, %+v, error %v", ok, stat, err)
		}
		if ok, stat, err := s.Exists(ctx, dir+"/no"); ok || stat != nil || err != nil {
			t.Errorf("%v, %+v, error %v", ok, stat, err)
		}
		results, err := s.Multi(ctx, &zk.CreateRequest{Path: dir + "/a"}, &zk.CheckVersionRequest{Path: dir, Version: 99}, &zk.DeleteRequest{Path: dir})
		mustBe(t, err, zk.ErrBadVersion)
		if len(results) != 3 || !errors.Is(results[1].Error, zk.ErrBadVersion) {
			t.Errorf("results %+v", results)
		}
		if results, err := s.Multi(ctx); err != nil || len(results) != 0 {
			t.Errorf("an empty transaction: %v, error %v", results, err)
		}
		var e *session.Error
		if _, _, err := s.Get(context.Background(), dir+"/a"); !errors.As(err, &e) || e.Op != "get" || e.Path != dir+"/a" {
			t.Errorf("error %#v", err)
		}
	})
}
