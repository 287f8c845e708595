package zkserver_test

import (
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// reader connects as a client that accepts a read-only server, and reports whether the server is
// read-only.
func reader(t *testing.T, s *zkserver.Server, i int, zxid, id int64, password string) (*raw, bool) {
	t.Helper()
	r := dialAt(t, s, i)
	pw := make([]byte, 16)
	copy(pw, password)
	r.frame(rec{}.i32(0).i64(zxid).i32(20000).i64(id).str(string(pw)).flag(true))
	in, err := r.read()
	if err != nil {
		t.Fatal(err)
	}
	in.i32()
	r.timeout, r.id, r.password = in.i32(), in.i64(), in.str()
	return r, in.take(1)[0] == 1
}

// With ReadOnlyMode an endpoint without a quorum serves clients that accept a read-only server, refuses their
// writes, and resumes no session of the ensemble.
func TestReadOnlyMode(t *testing.T) {
	ensemble(t, 3, zkserver.Config{ReadOnlyMode: true}, func(t *testing.T, s *zkserver.Server) {
		if _, only := reader(t, s, 1, 0, 0, ""); only {
			t.Fatal("read-only with a quorum")
		}
		a := at(t, s, 1, 40*time.Second)
		a.create("/a", 0)
		s.Endpoint(1).CutFromLeader()
		if err := s.Create("/later", nil); err != nil {
			t.Fatal(err)
		}
		a.closed()
		early := dialAt(t, s, 1)
		early.frame(rec{}.i32(0).i64(0).i32(20000).i64(0).str(string(make([]byte, 16))).flag(true))
		early.closed() // the endpoint looks for a quorum for two seconds
		time.Sleep(2 * time.Second)
		writer := a.moved(s, 1)
		writer.closed()

		r, only := reader(t, s, 1, 0, 0, "")
		if !only || r.id == 0 {
			t.Fatalf("id %#x, read-only %v", r.id, only)
		}
		zxid := s.Zxid()
		r.stat("/a")
		r.want(zkserver.ErrNoNode, zkserver.OpExists, watchRec("/later"))
		for op, body := range map[zkserver.OpCode][]byte{
			zkserver.OpCreate:  createRec("/b", "", 0),
			zkserver.OpDelete:  rec{}.str("/a").i32(-1),
			zkserver.OpSetData: setRec("/a"),
			zkserver.OpMulti:   multi(),
			zkserver.OpSync:    rec{}.str("/"),
		} {
			r.want(zkserver.ErrNotReadOnly, op, body)
		}
		r.want(0, zkserver.OpPing, nil)
		if s.Zxid() != zxid || len(s.Sessions()) != 2 {
			t.Fatalf("zxid %#x, was %#x; %d sessions, want those of the quorum", s.Zxid(), zxid, len(s.Sessions()))
		}
		global := dialAt(t, s, 1)
		global.frame(rec{}.i32(0).i64(0).i32(20000).i64(a.id).str(a.password).flag(true))
		global.closed() // as a real server refuses a session of the ensemble
		if again, only := reader(t, s, 1, 0, r.id, r.password); !only || again.id != r.id {
			t.Fatalf("id %#x, read-only %v", again.id, only)
		}
		if bad, only := reader(t, s, 1, 0, r.id, "no"); !only || bad.id != 0 {
			t.Fatalf("id %#x, read-only %v", bad.id, only)
		}
		late := dialAt(t, s, 1)
		late.frame(rec{}.i32(0).i64(s.Zxid()).i32(20000).i64(0).str(string(make([]byte, 16))).flag(true))
		late.closed()
		r.want(0, zkserver.OpCloseSession, nil)
		r.closed()
		s.Endpoint(1).Rejoin()
		if r = a.moved(s, 1).welcome(); r.id != a.id {
			t.Fatal("the session was lost")
		}
		r.stat("/later")
	})
}

// Without ReadOnlyMode an endpoint without a quorum serves no client.
func TestNoReadOnlyModeUnlessAskedFor(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		s.Endpoint(2).Stop()
		s.Endpoint(3).Stop()
		time.Sleep(time.Minute)
		r := dialAt(t, s, 1)
		r.frame(rec{}.i32(0).i64(0).i32(20000).i64(0).str(string(make([]byte, 16))).flag(true))
		r.closed()
	})
}

// A read-only server shows an unchanged tree, even if a quorum of the other endpoints writes.
func TestReadOnlyModeShowsWhatWas(t *testing.T) {
	ensemble(t, 3, zkserver.Config{ReadOnlyMode: true}, func(t *testing.T, s *zkserver.Server) {
		s.Endpoint(2).Stop()
		s.Endpoint(3).Stop()
		s.Endpoint(1).CutFromLeader()
		for _, i := range []int{2, 3} {
			if err := s.Endpoint(i).Start(); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Create("/later", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		r, only := reader(t, s, 1, 0, 0, "")
		r.want(zkserver.ErrNoNode, zkserver.OpExists, existsRec("/later"))
		if !only {
			t.Fatal("it has no quorum")
		}
	})
}

// A read-only server closes the connection of a silent reader, and expires no session.
func TestASilentReaderIsClosed(t *testing.T) {
	ensemble(t, 3, zkserver.Config{ReadOnlyMode: true}, func(t *testing.T, s *zkserver.Server) {
		s.Endpoint(2).Stop()
		s.Endpoint(3).Stop()
		time.Sleep(3 * time.Second)
		r, only := reader(t, s, 1, 0, 0, "")
		idle, _ := reader(t, s, 1, 0, 0, "")
		for range 7 {
			time.Sleep(15 * time.Second)
			r.want(0, zkserver.OpPing, nil)
		}
		idle.closed()
		begin := time.Now()
		r.closed()
		if d := time.Since(begin); !only || d <= 20*time.Second || d > 30*time.Second {
			t.Errorf("closed after %v of silence, want 20 to 30 s", d)
		}
		held, _ := reader(t, s, 1, 0, 0, "")
		s.Freeze()
		time.Sleep(time.Hour)
		held.send(zkserver.OpPing, nil)
		s.Thaw()
		held.recv()
		gone, _ := reader(t, s, 1, 0, 0, "")
		s.Partition(gone.id)
		gone.silent(time.Hour)
	})
}
