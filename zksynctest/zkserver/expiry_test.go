package zkserver_test

import (
	"slices"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Sessions expire in buckets, after their timeout and at most a tick later.
func TestExpiryBuckets(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		1000 * time.Millisecond: 1500 * time.Millisecond,
		1300 * time.Millisecond: 1500 * time.Millisecond,
		1700 * time.Millisecond: 2000 * time.Millisecond,
		2000 * time.Millisecond: 2500 * time.Millisecond,
	} {
		t.Run(timeout.String(), func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				s := start(t, zkserver.Config{TickTime: 500 * time.Millisecond})
				begin := time.Now()
				r := session(t, s, timeout)
				r.closed()
				if d := time.Since(begin); d != want {
					t.Fatalf("expired after %v, want %v", d, want)
				}
			})
		})
	}
}

// A session with pings within its timeout stays alive, and a session without pings expires.
func TestPingsKeepASessionAlive(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 4*time.Second)
		for range 100 {
			time.Sleep(3999 * time.Millisecond)
			r.want(0, zkserver.OpPing, nil)
		}
		begin := time.Now()
		r.closed()
		if d := time.Since(begin); d <= 4*time.Second || d > 6*time.Second {
			t.Fatalf("expired after %v", d)
		}
		if w := r.again(s).welcome(); w.id != 0 {
			t.Fatal("an expired session was taken up again")
		}
	})
}

// The expiry of a session deletes all its ephemerals in one transaction.
func TestExpiryIsOneTransaction(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		watcher, r := session(t, s, 40*time.Second), session(t, s, 4*time.Second)
		watcher.create("/d", 0)
		for _, name := range []string{"/d/a", "/d/b", "/d/c"} {
			r.create(name, 1)
		}
		if got := s.Sessions()[1].Ephemerals; !slices.Equal(got, []string{"/d/a", "/d/b", "/d/c"}) {
			t.Fatalf("ephemerals %v", got)
		}
		watcher.want(0, zkserver.OpGetChildren, rec{}.str("/d").flag(true))
		watcher.want(0, zkserver.OpExists, rec{}.str("/d/b").flag(true))
		before := s.Zxid()
		r.closed()
		// A one-shot child watch fires once for all deletions.
		if ev := watcher.event(); ev != (event{4, "/d"}) {
			t.Fatalf("%v", ev)
		}
		if ev := watcher.event(); ev != (event{2, "/d/b"}) {
			t.Fatalf("%v", ev)
		}
		st := watcher.stat("/d")
		if s.Zxid() != before+1 || st.pzxid != before+1 || st.children != 0 || st.cversion != 6 {
			t.Fatalf("zxid %d, before %d, %+v", s.Zxid(), before, st)
		}
	})
}

// closeSession deletes the ephemerals of the session, is answered, and ends the connection.
func TestCloseSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.create("/e", 1)
		r.want(0, zkserver.OpExists, rec{}.str("/e").flag(true))
		// In one write: the server may close the connection before a second one.
		const xid = 99
		r.write(append(framed(rec{}.i32(xid, int32(zkserver.OpCloseSession))), framed(rec{}.i32(-2, int32(zkserver.OpPing)))...))
		// The session's own watch event comes first, then the reply, and nothing for the later
		// request.
		if ev := r.event(); ev != (event{2, "/e"}) {
			t.Fatalf("%v", ev)
		}
		if p := r.recv(); p.xid != xid || p.code != 0 || p.zxid != 3 {
			t.Fatalf("%+v", p)
		}
		r.closed()
		if len(s.Sessions()) != 0 {
			t.Fatal("the session is still there")
		}
	})
}

// Disconnect closes the connection of a session and keeps the session, its ephemerals and its timeout.
func TestDisconnectKeepsTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 10*time.Second)
		r.create("/e", 1)
		r.want(0, zkserver.OpExists, rec{}.str("/e").flag(true))
		if err := s.Disconnect(r.id); err != nil {
			t.Fatal(err)
		}
		r.closed()
		if info := s.Sessions()[0]; info.Connected || len(info.Ephemerals) != 1 {
			t.Fatalf("%+v", info)
		}
		if s.Watches() != 0 {
			t.Fatal("a watch outlived its connection")
		}
		r.again(s).welcome().want(0, zkserver.OpPing, nil)
	})
}
