package zkserver_test

import (
	"slices"
	"testing"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

func watchRec(path string) rec { return rec{}.str(path).flag(true) }

// until reads frames up to the reply to xid and returns the events before it.
func (r *raw) until(xid int32) (events []event, p reply) {
	r.t.Helper()
	for {
		p := r.recv()
		if p.xid == xid {
			return events, p
		}
		if p.xid != -1 {
			r.t.Fatalf("reply to %d, want the one to %d", p.xid, xid)
		}
		kind, _, path := p.i32(), p.i32(), p.str()
		events = append(events, event{kind, path})
	}
}

// Watch events come before the reply to the request that caused them.
func TestWatchEventsComeBeforeTheReply(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.want(zkserver.ErrNoNode, zkserver.OpExists, watchRec("/a"))
		r.want(zkserver.ErrNoNode, zkserver.OpGetData, watchRec("/none"))
		r.want(zkserver.ErrNoNode, zkserver.OpGetChildren, watchRec("/none"))
		r.want(0, zkserver.OpGetChildren2, watchRec("/"))
		if n := s.WatchesOf(r.id); n != 2 {
			t.Fatalf("%d watches: only exists leaves one where there is no node", n)
		}
		step := func(op zkserver.OpCode, body rec, want ...event) {
			t.Helper()
			got, p := r.until(r.send(op, body))
			if p.code != 0 || !slices.Equal(got, want) {
				t.Fatalf("%v: %v %v, want %v", op, p.code, got, want)
			}
		}
		step(zkserver.OpCreate, createRec("/a", "", 0), event{1, "/a"}, event{4, "/"})
		step(zkserver.OpSetData, rec{}.str("/a").str("").i32(-1))
		r.want(0, zkserver.OpGetData, watchRec("/a"))
		r.want(0, zkserver.OpExists, watchRec("/a"))
		step(zkserver.OpSetData, rec{}.str("/a").str("").i32(-1), event{3, "/a"})
		r.want(0, zkserver.OpGetData, watchRec("/a"))
		step(zkserver.OpSetACL, append(rec{}.str("/a"), open()...).i32(-1))
		r.want(0, zkserver.OpGetChildren, watchRec("/a"))
		r.want(0, zkserver.OpGetChildren, watchRec("/"))
		step(zkserver.OpDelete, rec{}.str("/a").i32(-1), event{2, "/a"}, event{4, "/"})
		if s.Watches() != 0 {
			t.Fatalf("%d watches left", s.Watches())
		}
	})
}

// The watches that a multi triggers fire in the order of its operations.
func TestWatchesInAMultiFireInItsOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.create("/a", 0)
		r.want(zkserver.ErrNoNode, zkserver.OpExists, watchRec("/b"))
		r.want(0, zkserver.OpExists, watchRec("/a"))
		r.want(0, zkserver.OpGetChildren, watchRec("/"))
		got, p := r.until(r.send(zkserver.OpMulti, multi(
			sub(zkserver.OpSetData, rec{}.str("/a").str("").i32(-1)),
			sub(zkserver.OpCreate, createRec("/b", "", 0)),
			sub(zkserver.OpDelete, rec{}.str("/a").i32(-1)),
		)))
		if want := []event{{3, "/a"}, {1, "/b"}, {4, "/"}}; !slices.Equal(got, want) || p.code != 0 {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// A watch event carries the zxid of its transaction.
func TestEventsCarryTheZxidOfTheirTransaction(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.want(0, zkserver.OpGetChildren, watchRec("/"))
		if err := s.Create("/a", nil); err != nil {
			t.Fatal(err)
		}
		if p := r.recv(); p.xid != -1 || p.zxid != s.Zxid() || p.code != 0 {
			t.Fatalf("%+v", p)
		}
	})
}

// setWatches reports changes since the zxid that it names, and arms the other watches.
func TestSetWatches(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.create("/same", 0)
		r.create("/set", 0)
		r.create("/children", 0)
		rel := s.Zxid()
		r.want(0, zkserver.OpSetData, rec{}.str("/set").str("").i32(-1))
		r.create("/children/x", 0)
		for _, op := range []zkserver.OpCode{zkserver.OpSetWatches, zkserver.OpSetWatches2} {
			body := rec{}.i64(rel).
				strs("/gone", "/set", "/same").
				strs("/gone", "/set").
				strs("/gone", "/children", "/same")
			if op == zkserver.OpSetWatches2 {
				body = body.strs().strs()
			}
			got, p := r.until(r.send(op, body))
			want := []event{{2, "/gone"}, {3, "/set"}, {1, "/set"}, {2, "/gone"}, {4, "/children"}}
			if p.code != 0 || len(p.b) != 0 || !slices.Equal(got, want) {
				t.Fatalf("%v %v, want %v", p.code, got, want)
			}
			if n := s.WatchesOf(r.id); n != 3 {
				t.Fatalf("%d watches armed", n)
			}
		}
		got, _ := r.until(r.send(zkserver.OpCreate, createRec("/gone", "", 0)))
		if want := []event{{1, "/gone"}}; !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// removeWatches removes the session's own watches of the type and path, and no others.
func TestRemoveWatches(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r, other := session(t, s, 0), session(t, s, 0)
		other.want(0, zkserver.OpGetData, watchRec("/zookeeper"))
		remove := func(path string, kind int32) rec { return rec{}.str(path).i32(kind) }
		arm := func() {
			r.want(0, zkserver.OpGetData, watchRec("/"))
			r.want(0, zkserver.OpGetChildren, watchRec("/"))
		}
		arm()
		const op = zkserver.OpRemoveWatches
		runAsks(t, r, []ask{
			{"another's", op, remove("/zookeeper", 3), zkserver.ErrNoWatcher},
			{"no such kind", op, remove("/", 9), zkserver.ErrMarshalling},
			{"persistent", op, remove("/", 4), zkserver.ErrNoWatcher},
			{"recursive", op, remove("/", 5), zkserver.ErrNoWatcher},
			{"child", op, remove("/", 1), 0},
			{"child again", op, remove("/", 1), zkserver.ErrNoWatcher},
			{"data", op, remove("/", 2), 0},
		})
		arm()
		r.want(0, op, remove("/", 3))
		if s.Watches() != 1 || s.WatchesOf(other.id) != 1 {
			t.Fatalf("%d watches left", s.Watches())
		}
	})
}

// A watch event is withheld from a session that may not read the znode.
func TestEventsNeedTheRightToRead(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r, writer := session(t, s, 0), session(t, s, 0)
		r.want(zkserver.ErrNoNode, zkserver.OpExists, watchRec("/secret"))
		r.want(0, zkserver.OpGetChildren, watchRec("/"))
		writer.want(0, zkserver.OpCreate, createACL("/secret", 0, 2, "world", "anyone"))
		if ev := r.event(); ev != (event{4, "/"}) {
			t.Fatalf("%v", ev)
		}
		if s.Watches() != 0 {
			t.Fatal("a watch without the right to read is used up too")
		}
	})
}

// A change fires the watches of all sessions that are connected.
func TestManyWatchersInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		herd := make([]*raw, 50)
		for i := range herd {
			herd[i] = session(t, s, 0)
			herd[i].want(0, zkserver.OpExists, watchRec("/"))
		}
		herd[0].nc.Close()
		if err := s.Set("/", nil); err != nil {
			t.Fatal(err)
		}
		for _, r := range herd[1:] {
			if ev := r.event(); ev != (event{3, "/"}) {
				t.Fatalf("%v", ev)
			}
		}
	})
}
