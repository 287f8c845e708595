package zkserver_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// getEphemerals lists the ephemerals of the session whose paths have the prefix.
func TestGetEphemerals(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r, other := session(t, s, 0), session(t, s, 0)
		r.create("/d", 0)
		for _, path := range []string{"/a", "/ab", "/d/a"} {
			r.create(path, 1)
		}
		other.create("/theirs", 1)
		all := []string{"/a", "/ab", "/d/a"}
		for _, c := range []struct {
			prefix string
			want   []string
		}{
			{"", all}, {"/", all}, {" / \t", all}, {"\x00", all},
			{"/a", []string{"/a", "/ab"}}, {"/d/", []string{"/d/a"}}, {"/none", nil}, {"a", nil},
		} {
			got := r.want(0, zkserver.OpGetEphemerals, rec{}.str(c.prefix)).strs()
			if slices.Sort(got); !slices.Equal(got, c.want) {
				t.Errorf("%q: %v, want %v", c.prefix, got, c.want)
			}
		}
		if got := r.want(0, zkserver.OpGetEphemerals, rec{}.i32(-1)).strs(); len(got) != 3 {
			t.Errorf("null: %v", got)
		}
		r.want(zkserver.ErrMarshalling, zkserver.OpGetEphemerals, nil)
		s.Lag(r.id)
		if got := r.want(0, zkserver.OpGetEphemerals, rec{}.str("")).strs(); len(got) != 3 {
			t.Errorf("behind: %v", got)
		}
	})
}

// getAllChildrenNumber counts all descendants of a znode.
func TestGetAllChildrenNumber(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		for _, path := range []string{"/a", "/a/b", "/a/b/c", "/a/d", "/ab"} {
			r.create(path, 0)
		}
		r.want(0, zkserver.OpCreate, createACL("/secret", 0, 2, "world", "anyone"))
		for path, want := range map[string]int32{"/": 9, "": 10, "/a": 3, "/a/b": 1, "/ab": 0, "/zookeeper": 2} {
			if got := r.want(0, zkserver.OpGetAllChildrenNumber, rec{}.str(path)).i32(); got != want {
				t.Errorf("%q: %d, want %d", path, got, want)
			}
		}
		runAsks(t, r, []ask{
			{"none", zkserver.OpGetAllChildrenNumber, rec{}.str("/no"), zkserver.ErrNoNode},
			{"not to be read", zkserver.OpGetAllChildrenNumber, rec{}.str("/secret"), zkserver.ErrNoAuth},
			{"null", zkserver.OpGetAllChildrenNumber, rec{}.i32(-1), zkserver.ErrMarshalling},
		})
	})
}

// whoAmI lists the identities of the connection.
func TestWhoAmI(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{SuperDigest: "super:D/InIHSb7yEEbrWz8b9l71RjZJU="})
		r := session(t, s, 0)
		whoAmI := func() map[string]string {
			p := r.want(0, zkserver.OpWhoAmI, nil)
			who := map[string]string{}
			for range p.i32() {
				scheme := p.str()
				who[scheme] = p.str()
			}
			return who
		}
		if got := whoAmI(); !maps.Equal(got, map[string]string{"ip": "127.0.0.1"}) {
			t.Errorf("%v", got)
		}
		r.want(0, zkserver.OpAuth, rec{}.i32(0).str("digest").str("super:test"))
		if got := whoAmI(); !maps.Equal(got, map[string]string{"ip": "127.0.0.1", "digest": "super", "super": ""}) {
			t.Errorf("%v", got)
		}
	})
}
