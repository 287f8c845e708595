package zkserver_test

import (
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A session moves between endpoints with its client; its old connection still reads, and is closed
// at a write. The expected behaviour of the old connection was seen with real servers.
func TestASessionMoves(t *testing.T) {
	for _, c := range []struct {
		name   string
		from   int
		op     zkserver.OpCode
		body   []byte
		served bool
		zxids  int64 // number of zxids that the request takes
	}{
		{"ping to a follower", 1, zkserver.OpPing, nil, true, 0},
		{"read from a follower", 1, zkserver.OpExists, existsRec("/"), true, 0},
		{"sync with a follower", 1, zkserver.OpSync, rec{}.str("/"), true, 0},
		{"write to a follower", 1, zkserver.OpSetData, setRec("/"), false, 1},
		{"ping to the leader", 3, zkserver.OpPing, nil, false, 0},
		{"read from the leader", 3, zkserver.OpExists, existsRec("/"), false, 0},
		{"sync with the leader", 3, zkserver.OpSync, rec{}.str("/"), false, 0},
		{"write to the leader", 3, zkserver.OpSetData, setRec("/"), false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			three(t, func(t *testing.T, s *zkserver.Server) {
				old := at(t, s, c.from, 40*time.Second)
				old.create("/e", 1)
				r := old.moved(s, 2).welcome()
				zxid := s.Zxid()
				if old.send(c.op, c.body); c.served {
					old.recv()
				} else {
					old.closed()
				}
				if took := s.Zxid() - zxid; took != c.zxids {
					t.Fatalf("%d transactions, want %d", took, c.zxids)
				}
				r.create("/mine", 0)
				if v := r.stat("/").version; v != 0 {
					t.Fatal("a write went through on the connection that the session had left")
				}
				if list := s.Sessions(); len(list) != 1 || !list[0].Connected {
					t.Fatalf("%+v", list)
				}
				if c.served { // the end of the session ends both connections
					if err := s.ExpireSession(r.id); err != nil {
						t.Fatal(err)
					}
					old.closed()
					r.closed()
				}
			})
		})
	}
}

// A session that moves back to its first endpoint works there, and its earlier connections are
// closed.
func TestASessionMovesBack(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		first := at(t, s, 1, 40*time.Second)
		second := first.moved(s, 2).welcome()
		third := first.moved(s, 1).welcome()
		first.closed() // an endpoint keeps one connection of a session
		third.create("/a", 0)
		second.stat("/")
		second.want(0, zkserver.OpCloseSession, nil) // closeSession needs no ownership
		second.closed()
		third.closed()
	})
}
