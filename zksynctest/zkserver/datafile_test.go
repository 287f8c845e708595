package zkserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// onFile starts a server on a new data file.
func onFile(t testing.TB, cfg zkserver.Config) (*zkserver.Server, string) {
	t.Helper()
	cfg.DataFile = filepath.Join(t.TempDir(), "data")
	return start(t, cfg), cfg.DataFile
}

// crashed starts a server on a copy of the file, as kill -9 would leave it now.
func crashed(t testing.TB, file string, cfg zkserver.Config) *zkserver.Server {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cfg.DataFile = filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(cfg.DataFile, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, cfg)
}

func same(t testing.TB, what string, got, want *zkserver.Server) {
	t.Helper()
	if got, want := got.Everything(), want.Everything(); got != want {
		t.Fatalf("%s:\n%s\nwant\n%s", what, got, want)
	}
}

var ttls = zkserver.Config{ExtendedTypes: true}

// With DataFile every answer that a client has received survives kill -9. TestACrashLosesNothing
// copies the file directly after each answer, and starts a server on the copy.
func TestACrashLosesNothing(t *testing.T) {
	s, file := onFile(t, ttls)
	r := session(t, s, 10*time.Second)
	open := rec{}.acl(31, "world", "anyone")
	for i, c := range []struct {
		code zkserver.Code
		op   zkserver.OpCode
		body rec
	}{
		{0, zkserver.OpCreate, createRec("/a", "data", 0)},
		{0, zkserver.OpCreate, append(append(rec{}.str("/null").i32(-1), open...), 0, 0, 0, 0)},
		{0, zkserver.OpCreate, createRec("/a/e-", "", 3)},
		{0, zkserver.OpCreate, append(rec{}.str("/acl").str(""), rec{}.acl(31, "digest", "u:x", 1, "world", "anyone")...).i32(0)},
		{0, zkserver.OpCreateContainer, createRec("/a/c", "", 4)},
		{0, zkserver.OpCreateTTL, createRec("/a/t", "", 5).i64(1 << 39)},
		{0, zkserver.OpSetData, rec{}.str("/a").str("more").i32(-1)},
		{0, zkserver.OpSetACL, append(rec{}.str("/a"), rec{}.acl(15, "world", "anyone")...).i32(-1)},
		{0, zkserver.OpSetData, rec{}.str("/").i32(-1, -1)},
		{0, zkserver.OpDelete, rec{}.str("/a/c").i32(-1)},
		{zkserver.ErrNoNode, zkserver.OpDelete, rec{}.str("/a/c").i32(-1)},
		{0, zkserver.OpMulti, multi(
			sub(zkserver.OpCreate, createRec("/m", "", 0)),
			sub(zkserver.OpCreate, createRec("/m/s-", "", 2)),
			sub(zkserver.OpDelete, rec{}.str("/null").i32(-1)),
			sub(zkserver.OpCreate, createRec("/null", "again", 1)),
			sub(zkserver.OpSetData, rec{}.str("/m").str("x").i32(0)),
		)},
		{0, zkserver.OpMulti, multi(
			sub(zkserver.OpCreate, createRec("/rolled", "", 0)),
			sub(zkserver.OpDelete, rec{}.str("/m").i32(-1)),
		)},
		{0, zkserver.OpCreate, createRec("/zookeeper/quota/a", "", 0)},
		{0, zkserver.OpCreate, createRec("/zookeeper/quota/a/zookeeper_limits", "count=9,bytes=-1", 0)},
		{0, zkserver.OpCreate, createRec("/zookeeper/quota/a/zookeeper_stats", "", 0)},
		{0, zkserver.OpCreate, createRec("/a/counted", "12345", 0)},
		{zkserver.ErrNoNode, zkserver.OpSetData, rec{}.str("/none").str("").i32(-1)},
	} {
		r.want(c.code, c.op, c.body)
		same(t, c.op.String(), crashed(t, file, ttls), s)
		if i == 3 {
			s.Close()
			s = start(t, zkserver.Config{ExtendedTypes: true, DataFile: file})
			r = r.again(s).welcome()
		}
	}
	if strings.Contains(s.Everything(), "/rolled") || !strings.Contains(s.Everything(), "/a/t") {
		t.Error(s.Everything())
	}
}

// A session survives the server with its ephemerals, its password, and the timeout with which it
// was created. A restarted server does not reuse a session id.
func TestASessionOutlivesTheServer(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s, file := onFile(t, zkserver.Config{})
		r, other := session(t, s, 10*time.Second), session(t, s, 10*time.Second)
		r.create("/e", 1)
		other.create("/f", 1)
		other.want(0, zkserver.OpCloseSession, nil)
		// The client reconnects with another timeout, which the next leader does not know.
		r.timeout = 20_000
		r = r.again(s).welcome()

		next := crashed(t, file, zkserver.Config{})
		list := next.Sessions()
		if len(list) != 1 || list[0].ID != r.id || list[0].Timeout != 10*time.Second || len(list[0].Ephemerals) != 1 {
			t.Fatalf("%+v", list)
		}
		again := r.again(next).welcome()
		if again.id != r.id || again.stat("/e").owner != r.id {
			t.Fatalf("%#x, want %#x", again.id, r.id)
		}
		if late := session(t, next, 10*time.Second); late.id <= other.id {
			t.Errorf("session %#x after %#x", late.id, other.id)
		}
		again.nc.Close()
		time.Sleep(19 * time.Second)
		if _, ok := next.Get("/e"); !ok {
			t.Error("it went before its time")
		}
		time.Sleep(4 * time.Second)
		if _, ok := next.Get("/e"); ok {
			t.Error("nobody took the session up, and its ephemeral is there")
		}
	})
}

// Ephemerals whose removal was delayed are gone after a restart from the DataFile.
func TestLeftoversGoWithTheNextStart(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s, file := onFile(t, zkserver.Config{})
		r := session(t, s, 10*time.Second)
		r.create("/e", 1)
		s.DelayEphemeralRemoval(time.Hour)
		r.want(0, zkserver.OpCloseSession, nil)
		if _, ok := s.Get("/e"); !ok {
			t.Fatal("it is not delayed")
		}
		next := crashed(t, file, zkserver.Config{})
		if _, ok := next.Get("/e"); ok || next.Zxid() != s.Zxid()+1 {
			t.Errorf("the ephemeral of a session that is over is there: %v, %d", ok, next.Zxid())
		}
	})
}

// A watch event and a read of another client show only changes that are in the DataFile.
func TestWatchersSeeNothingThatIsLost(t *testing.T) {
	s, file := onFile(t, zkserver.Config{})
	writer, reader := session(t, s, 10*time.Second), session(t, s, 10*time.Second)
	writer.create("/w", 0)
	for range 50 {
		reader.want(0, zkserver.OpGetData, rec{}.str("/w").flag(true))
		before := s.Zxid()
		writer.send(zkserver.OpSetData, rec{}.str("/w").str("x").i32(-1))
		reader.event()
		if next := crashed(t, file, zkserver.Config{}); next.Zxid() <= before {
			t.Fatalf("an event of a transaction after %d came, and the file has %d", before, next.Zxid())
		}
		writer.recv()
	}
}
