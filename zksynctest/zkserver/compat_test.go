package zkserver_test

import (
	"testing"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

func in38(t *testing.T, test func(t *testing.T, s *zkserver.Server)) {
	t.Helper()
	bounds.Bubble(t, func(t *testing.T) { test(t, start(t, zkserver.Config{Compat38: true})) })
}

// With Config.Compat38 a session has one mode of watch for each path, as with a server of release 3.8.0.
func TestCompat38HasOneModeAPath(t *testing.T) {
	in38(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.addWatch("/a", persistentMode)
		r.want(zkserver.ErrNoNode, zkserver.OpExists, watchRec("/a")) // turns the watch into a one-shot watch
		r.step(zkserver.OpCreate, createRec("/a", "", 0), event{1, "/a"})
		r.step(zkserver.OpSetData, setRec("/a"))
		r.step(zkserver.OpCreate, createRec("/a/b", "", 0), event{4, "/a"}) // the watch is still in the table of child watches
		r.addWatch("/a", recursiveMode)
		r.step(zkserver.OpCreate, createRec("/a/c", "", 0), event{1, "/a/c"})
		r.want(0, zkserver.OpGetChildren, watchRec("/a"))
		r.step(zkserver.OpCreate, createRec("/a/d", "", 0), event{1, "/a/d"}, event{4, "/a"})
		r.step(zkserver.OpDelete, deleteRec("/a/d"), event{2, "/a/d"})
	})
}

// With Config.Compat38 checkWatches finds the watches of other sessions too, and events carry no zxid, as with release
// 3.8.0.
func TestCompat38TellsOfOthers(t *testing.T) {
	in38(t, func(t *testing.T, s *zkserver.Server) {
		r, writer := session(t, s, 0), session(t, s, 0)
		r.want(zkserver.ErrNoNode, zkserver.OpExists, watchRec("/secret"))
		r.want(zkserver.ErrNoNode, zkserver.OpExists, watchRec("/open"))
		writer.want(0, zkserver.OpCreate, createACL("/secret", 0, 2, "world", "anyone")) // the session gets no event
		writer.create("/open", 0)
		p := r.recv()
		if p.xid != -1 || p.zxid != -1 || p.i32() != 1 || p.i32() != 3 || p.str() != "/open" {
			t.Fatalf("%+v", p)
		}
		r.want(0, zkserver.OpExists, rec{}.str("/secret").flag(true))
		runAsks(t, writer, []ask{
			{"another's watch", zkserver.OpCheckWatches, watchTypeRec("/secret", data), 0},
			{"in the other table", zkserver.OpCheckWatches, watchTypeRec("/secret", children), zkserver.ErrNoWatcher},
			{"persistent", zkserver.OpCheckWatches, watchTypeRec("/secret", persistentType), zkserver.ErrMarshalling},
			{"recursive", zkserver.OpRemoveWatches, watchTypeRec("/secret", persistentRecursive), zkserver.ErrMarshalling},
			{"removing another's", zkserver.OpRemoveWatches, watchTypeRec("/secret", data), zkserver.ErrNoWatcher},
		})
		p = writer.want(0, zkserver.OpMulti, multi(sub(zkserver.OpCreate2, createRec("/m", "", 0))))
		if h := p.multiHead(); h.kind != zkserver.OpCreate || p.str() != "/m" || len(p.results()) != 0 {
			t.Fatalf("%+v", h)
		}
	})
}

// A standalone server refuses reconfig with the errors of a real standalone server.
func TestReconfigOfAStandaloneServer(t *testing.T) {
	body := rec{}.str("").str("").str("").i64(-1)
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		before := s.Zxid()
		if p := r.want(zkserver.ErrReconfigDisabled, zkserver.OpReconfig, body); p.zxid != before+1 {
			t.Fatalf("%+v", p)
		}
		if p := r.want(zkserver.ErrBadArguments, zkserver.OpDeleteContainer, rec{}.str("/c")); p.zxid != before+2 {
			t.Fatalf("%+v", p)
		}
	})
	bounds.Bubble(t, func(t *testing.T) {
		r := session(t, start(t, zkserver.Config{Reconfig: true}), 0)
		r.want(zkserver.ErrUnimplemented, zkserver.OpReconfig, body)
		r.want(0, zkserver.OpPing, nil)
	})
}
