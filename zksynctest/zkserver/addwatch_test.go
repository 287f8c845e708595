package zkserver_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const (
	persistentMode = 0
	recursiveMode  = 1
)

// The watch types of checkWatches and removeWatches.
const (
	children            = 1
	data                = 2
	anyType             = 3
	persistentType      = 4
	persistentRecursive = 5
)

func watchTypeRec(path string, kind int32) rec { return rec{}.str(path).i32(kind) }

func (r *raw) addWatch(path string, mode int32) {
	r.t.Helper()
	p := r.want(0, zkserver.OpAddWatch, watchTypeRec(path, mode))
	if code := p.i32(); code != 0 || len(p.b) != 0 {
		r.t.Fatalf("addWatch: record %d, %d bytes behind", code, len(p.b))
	}
}

// step sends a write and compares the events that precede its answer.
func (r *raw) step(op zkserver.OpCode, body rec, want ...event) {
	r.t.Helper()
	got, p := r.until(r.send(op, body))
	if p.code != 0 || !slices.Equal(got, want) {
		r.t.Fatalf("%v: %v %v, want %v", op, p.code, got, want)
	}
}

func setRec(path string) rec    { return rec{}.str(path).str("").i32(-1) }
func deleteRec(path string) rec { return rec{}.str(path).i32(-1) }

// A persistent watch reports every creation, change and deletion of its znode and each change of its list of children.
func TestPersistentWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.addWatch("/a", persistentMode) // the znode does not exist yet
		for range 2 {
			r.step(zkserver.OpCreate, createRec("/a", "", 0), event{1, "/a"})
			r.step(zkserver.OpSetData, setRec("/a"), event{3, "/a"})
			r.step(zkserver.OpSetData, setRec("/a"), event{3, "/a"})
			r.step(zkserver.OpCreate, createRec("/a/b", "", 0), event{4, "/a"})
			r.step(zkserver.OpSetData, setRec("/a/b"))
			r.step(zkserver.OpDelete, deleteRec("/a/b"), event{4, "/a"})
			r.step(zkserver.OpDelete, deleteRec("/a"), event{2, "/a"})
		}
		if n := s.WatchesOf(r.id); n != 2 {
			t.Fatalf("%d watches, want one in each table", n)
		}
		r.nc.Close()
		synctest.Wait()
		if n := s.Watches(); n != 0 {
			t.Fatalf("%d watches outlive their connection", n)
		}
	})
}

// A recursive watch reports every change of its znode and of all descendants. It does not report a
// znode whose path only has the same prefix.
func TestRecursiveWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r, all := session(t, s, 0), session(t, s, 0)
		r.addWatch("/a", recursiveMode)
		all.addWatch("/", recursiveMode)
		r.step(zkserver.OpCreate, createRec("/ab", "", 0)) // the same prefix, but no descendant
		for range 2 {
			r.step(zkserver.OpCreate, createRec("/a", "", 0), event{1, "/a"})
			r.step(zkserver.OpCreate, createRec("/a/b", "", 0), event{1, "/a/b"})
			r.step(zkserver.OpCreate, createRec("/a/b/c", "", 0), event{1, "/a/b/c"})
			r.step(zkserver.OpSetData, setRec("/a/b/c"), event{3, "/a/b/c"})
			r.step(zkserver.OpSetData, setRec("/a"), event{3, "/a"})
			r.step(zkserver.OpDelete, deleteRec("/a/b/c"), event{2, "/a/b/c"})
			r.step(zkserver.OpDelete, deleteRec("/a/b"), event{2, "/a/b"})
			r.step(zkserver.OpDelete, deleteRec("/a"), event{2, "/a"})
		}
		for _, want := range []event{{1, "/ab"}, {1, "/a"}, {1, "/a/b"}} {
			if got := all.event(); got != want {
				t.Fatalf("%v, want %v", got, want)
			}
		}
		r.want(0, zkserver.OpRemoveWatches, watchTypeRec("/a", persistentRecursive))
		r.step(zkserver.OpCreate, createRec("/a", "", 0))
	})
}

// Persistent and recursive watches coexist with one-shot watches: a znode that is watched in several ways is reported
// once, and only the one-shot watch is used up (ZOOKEEPER-4466).
func TestModesOfWatchCoexist(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.addWatch("/a", recursiveMode)
		r.addWatch("/a", persistentMode)
		r.addWatch("/a", persistentMode)
		r.want(zkserver.ErrNoNode, zkserver.OpExists, watchRec("/a"))
		r.step(zkserver.OpCreate, createRec("/a", "", 0), event{1, "/a"})
		r.want(0, zkserver.OpGetChildren, watchRec("/a"))
		r.step(zkserver.OpCreate, createRec("/a/b", "", 0), event{1, "/a/b"}, event{4, "/a"})
		r.step(zkserver.OpDelete, deleteRec("/a/b"), event{2, "/a/b"}, event{4, "/a"})
		r.want(0, zkserver.OpGetData, watchRec("/a"))
		r.want(0, zkserver.OpGetChildren, watchRec("/a"))
		r.step(zkserver.OpDelete, deleteRec("/a"), event{2, "/a"})
		runAsks(t, r, []ask{
			{"data", zkserver.OpCheckWatches, watchTypeRec("/a", data), zkserver.ErrNoWatcher},
			{"children", zkserver.OpCheckWatches, watchTypeRec("/a", children), zkserver.ErrNoWatcher},
			{"persistent", zkserver.OpCheckWatches, watchTypeRec("/a", persistentType), 0},
			{"recursive", zkserver.OpCheckWatches, watchTypeRec("/a", persistentRecursive), 0},
		})
		r.want(0, zkserver.OpRemoveWatches, watchTypeRec("/a", persistentType))
		r.step(zkserver.OpCreate, createRec("/a", "", 0), event{1, "/a"})
		r.step(zkserver.OpCreate, createRec("/a/b", "", 0), event{1, "/a/b"})
	})
}

// addWatch, checkWatches and removeWatches refuse invalid modes and types with the error of a real server.
func TestAddWatchThatMakesNoSense(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		runAsks(t, r, []ask{
			{"no such mode", zkserver.OpAddWatch, watchTypeRec("/a", 2), zkserver.ErrMarshalling},
			{"negative", zkserver.OpAddWatch, watchTypeRec("/a", -1), zkserver.ErrMarshalling},
			{"no mode", zkserver.OpAddWatch, rec{}.str("/a"), zkserver.ErrMarshalling},
			{"no such type", zkserver.OpCheckWatches, watchTypeRec("/a", 6), zkserver.ErrMarshalling},
			{"null", zkserver.OpCheckWatches, rec{}.i32(-1, 3), zkserver.ErrNoWatcher},
			{"null removed", zkserver.OpRemoveWatches, rec{}.i32(-1, 3), zkserver.ErrNoWatcher},
		})
		before := s.Zxid()
		r.addWatch("no path at all", persistentMode)
		if s.Zxid() != before {
			t.Fatal("a watch takes no zxid")
		}
	})
}

// checkWatches and removeWatches find exactly the watches of the type that they name.
func TestCheckAndRemoveWatchesByType(t *testing.T) {
	arm := map[int32]func(r *raw){
		children:            func(r *raw) { r.want(0, zkserver.OpGetChildren, watchRec("/")) },
		data:                func(r *raw) { r.want(0, zkserver.OpGetData, watchRec("/")) },
		persistentType:      func(r *raw) { r.addWatch("/", persistentMode) },
		persistentRecursive: func(r *raw) { r.addWatch("/", recursiveMode) },
	}
	for armed, do := range arm {
		inBubble(t, func(t *testing.T, s *zkserver.Server) {
			r, other := session(t, s, 0), session(t, s, 0)
			for _, op := range []zkserver.OpCode{zkserver.OpCheckWatches, zkserver.OpRemoveWatches} {
				for kind := int32(1); kind <= 5; kind++ {
					do(r)
					want := zkserver.ErrNoWatcher
					if kind == armed || kind == anyType {
						want = 0
					}
					other.want(zkserver.ErrNoWatcher, op, watchTypeRec("/", kind))
					if p := r.call(op, watchTypeRec("/", kind)); p.code != want {
						t.Errorf("%v %d where %d is armed: %v, want %v", op, kind, armed, p.code, want)
					}
					left := s.WatchesOf(r.id) > 0
					if removed := op == zkserver.OpRemoveWatches && want == 0; left == removed {
						t.Errorf("%v %d where %d is armed: watches left: %v", op, kind, armed, left)
					}
				}
			}
		})
	}
}

// setWatches2 arms persistent and recursive watches without reporting changes since the zxid that it names.
func TestSetWatches2ArmsLastingWatches(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.create("/p", 0)
		r.create("/r", 0)
		// Both znodes have changed since zxid 0, but their watches are only armed.
		r.step(zkserver.OpSetWatches2, rec{}.i64(0).strs().strs().strs().strs("/p").strs("/r"))
		r.step(zkserver.OpCreate, createRec("/p/x", "", 0), event{4, "/p"})
		r.step(zkserver.OpCreate, createRec("/r/x", "", 0), event{1, "/r/x"})
		r.step(zkserver.OpSetData, setRec("/p"), event{3, "/p"})
	})
}

// A lagging session gets all events of its persistent and recursive watches in order when it catches up.
func TestLastingWatchesOfALaggingSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 20*time.Second)
		for _, path := range []string{"/p", "/r", "/r/gone", "/r/set", "/r/again", "/r/same"} {
			r.create(path, 0)
		}
		r.addWatch("/p", persistentMode)
		r.addWatch("/r", recursiveMode)
		s.Lag(r.id)
		for _, err := range []error{
			s.Set("/p", nil), s.Create("/p/x", nil), s.Delete("/r/gone"), s.Set("/r/set", nil),
			s.Delete("/r/again"), s.Create("/r/again", nil), s.Create("/r/new", nil),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		r.step(zkserver.OpSync, rec{}.str("/"),
			event{3, "/p"}, event{4, "/p"},
			event{2, "/r/gone"}, event{3, "/r/set"}, event{2, "/r/again"}, event{1, "/r/again"}, event{1, "/r/new"})
		r.step(zkserver.OpSetData, setRec("/p"), event{3, "/p"})
		r.step(zkserver.OpSetData, setRec("/r/new"), event{3, "/r/new"})
	})
}
