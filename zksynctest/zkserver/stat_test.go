package zkserver_test

import (
	"slices"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A new server has the system znodes of a real server with the same Stats and ACLs.
func TestFreshTree(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		if st := r.stat("/"); st != (stat{cversion: -1, children: 1}) {
			t.Errorf("/ %+v", st)
		}
		if st := r.stat("/zookeeper"); st != (stat{cversion: -2, children: 2}) {
			t.Errorf("/zookeeper %+v", st)
		}
		if st := r.stat("/zookeeper/config"); st != (stat{aversion: -1}) {
			t.Errorf("/zookeeper/config %+v", st)
		}
		p := r.want(0, zkserver.OpGetACL, rec{}.str("/zookeeper/config"))
		if n, perms, scheme, id := p.i32(), p.i32(), p.str(), p.str(); n != 1 || perms != 1 || scheme != "world" || id != "anyone" {
			t.Errorf("%d %d %s:%s", n, perms, scheme, id)
		}
		p = r.want(0, zkserver.OpGetChildren, rec{}.str("/zookeeper").flag(false))
		if names := p.strs(); !slices.Contains(names, "config") || !slices.Contains(names, "quota") {
			t.Errorf("%v", names)
		}
	})
}

// The fields of a Stat change with each operation like in a real server.
func TestStat(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 20*time.Second) // zxid 1
		created := time.Now().UnixMilli()
		r.want(0, zkserver.OpCreate, createRec("/p", "data", 0)) // 2
		want := stat{czxid: 2, mzxid: 2, pzxid: 2, ctime: created, mtime: created, dataLength: 4}
		if st := r.stat("/p"); st != want {
			t.Fatalf("after create %+v", st)
		}
		if st := r.stat("/"); st.pzxid != 2 || st.cversion != 0 || st.mzxid != 0 || st.children != 2 {
			t.Fatalf("root %+v", st)
		}
		time.Sleep(time.Second)
		r.create("/p/c", 0) // 3
		want.pzxid, want.cversion, want.children = 3, 1, 1
		if st := r.stat("/p"); st != want {
			t.Fatalf("after a child %+v", st)
		}
		r.want(0, zkserver.OpDelete, rec{}.str("/p/c").i32(0)) // 4
		want.pzxid, want.cversion, want.children = 4, 2, 0
		if st := r.stat("/p"); st != want {
			t.Fatalf("after the child has gone %+v", st)
		}
		set := r.want(0, zkserver.OpSetData, rec{}.str("/p").str("data").i32(0)) // 5
		want.mzxid, want.mtime, want.version = 5, created+1000, 1
		if st := set.stat(); st != want {
			t.Fatalf("after setData of the same %+v", st)
		}
		set = r.want(0, zkserver.OpSetACL, append(rec{}.str("/p"), open()...).i32(0)) // 6
		want.aversion = 1
		if st := set.stat(); st != want {
			t.Fatalf("after setACL %+v", st)
		}
	})
}

// The server keeps null data and empty data apart.
func TestNullDataStaysNull(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.want(0, zkserver.OpCreate, append(rec{}.str("/null").i32(-1), open()...).i32(0))
		r.create("/empty", 0)
		for path, want := range map[string]int32{"/null": -1, "/empty": 0} {
			p := r.want(0, zkserver.OpGetData, rec{}.str(path).flag(false))
			if n := p.i32(); n != want {
				t.Errorf("%s has the length %d on the wire", path, n)
			}
			if st := p.stat(); st.dataLength != 0 {
				t.Errorf("%s has dataLength %d", path, st.dataLength)
			}
		}
	})
}
