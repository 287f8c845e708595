package watch_test

import (
	"slices"
	"testing"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
)

// Children are sorted, nil while the znode does not exist, and empty while it has none.
func TestChildrenFollowsTheList(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		m := srv.Connect(t)
		s := live(t, m)
		path := servers.Path(t)
		st := watch.Children(t.Context(), m, path)
		if got := next(t, st); got != nil {
			t.Fatalf("children of a znode that does not exist: %v, want nil", got)
		}
		create := func(path string) {
			t.Helper()
			_, err := s.Create(t.Context(), path, nil, 0)
			must(t, err)
		}
		create(path)
		if got := next(t, st); got == nil || len(got) != 0 {
			t.Fatalf("children of an empty znode: %v, want an empty list", got)
		}
		create(path + "/b")
		if got := next(t, st); !slices.Equal(got, []string{"b"}) {
			t.Fatal("children", got)
		}
		create(path + "/a")
		if got := next(t, st); !slices.Equal(got, []string{"a", "b"}) {
			t.Fatal("children", got)
		}
		// A Children stream does not follow data.
		_, err := s.Set(t.Context(), path, []byte("x"), -1)
		must(t, err)
		must(t, s.Delete(t.Context(), path+"/b", -1))
		if got := next(t, st); !slices.Equal(got, []string{"a"}) {
			t.Fatal("children", got)
		}
		must(t, s.Delete(t.Context(), path+"/a", -1))
		next(t, st)
		must(t, s.Delete(t.Context(), path, -1))
		if got := next(t, st); got != nil {
			t.Fatalf("children after removal: %v, want nil", got)
		}
	})
}

// After a reconnect Children reports a znode that was deleted and created again, and nothing if nothing changed.
func TestChildrenToldWhatChangedWhileDisconnected(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		must(t, srv.Create("/a", nil))
		must(t, srv.Create("/a/x", nil))
		st := watch.Children(t.Context(), m, "/a")
		next(t, st)
		for _, lose := range []func(int64) error{srv.Disconnect, srv.ExpireSession} {
			must(t, lose(live(t, m).ID()))
			none(t, st)

			unseen(t, srv, m, lose, func() {
				must(t, srv.Delete("/a/x"))
				must(t, srv.Delete("/a"))
				must(t, srv.Create("/a", nil))
				must(t, srv.Create("/a/x", nil))
			})
			if got := next(t, st); !slices.Equal(got, []string{"x"}) {
				t.Fatal("children", got)
			}
			none(t, st)
		}
	})
}
