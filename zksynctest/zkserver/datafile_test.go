package zkserver_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// onFile starts a server on a file of its own.
func onFile(t testing.TB, cfg zkserver.Config) (*zkserver.Server, string) {
	t.Helper()
	cfg.DataFile = filepath.Join(t.TempDir(), "data")
	return start(t, cfg), cfg.DataFile
}

// crashed starts a server on what a kill -9 at this moment would leave.
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

// TestACrashLosesNothing looks at the file right after each answer, and begins
// again from what is there.
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

// TestASessionOutlivesTheServer: with its ephemerals, under its password, and for
// as long as its timeout. A restart does not give an id again.
func TestASessionOutlivesTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, file := onFile(t, zkserver.Config{})
		r, other := session(t, s, 10*time.Second), session(t, s, 10*time.Second)
		r.create("/e", 1)
		other.create("/f", 1)
		other.want(0, zkserver.OpCloseSession, nil)
		// It comes back with another timeout, which lasts too.
		r.timeout = 20_000
		r = r.again(s).welcome()

		next := crashed(t, file, zkserver.Config{})
		list := next.Sessions()
		if len(list) != 1 || list[0].ID != r.id || list[0].Timeout != 20*time.Second || len(list[0].Ephemerals) != 1 {
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

func TestLeftoversGoWithTheNextStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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

// TestWatchersSeeNothingThatIsLost: an event, too, comes only when the file has it,
// and so does what somebody else reads.
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

// TestRandomHistoriesOnFile compares what the file makes of a history with what
// the server has made of it.
func TestRandomHistoriesOnFile(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s, file := onFile(t, ttls)
		r := session(t, s, 10*time.Second)
		path := func() (p string) {
			for range 1 + rng.IntN(3) {
				p += "/" + string(rune('a'+rng.IntN(3)))
			}
			return p
		}
		one := func() (zkserver.OpCode, rec) {
			switch p := path(); rng.IntN(6) {
			case 0, 1:
				return zkserver.OpCreate, createRec(p, "1", int32(rng.IntN(4)))
			case 2:
				return zkserver.OpSetData, rec{}.str(p).str(strings.Repeat("x", rng.IntN(9))).i32(-1)
			case 3:
				return zkserver.OpCreateContainer, createRec(p, "", 4)
			default:
				return zkserver.OpDelete, rec{}.str(p).i32(-1)
			}
		}
		for range 200 {
			if op, body := one(); rng.IntN(3) > 0 {
				r.call(op, body)
				continue
			}
			var subs []rec
			for range 1 + rng.IntN(4) {
				op, body := one()
				subs = append(subs, sub(op, body))
			}
			r.call(zkserver.OpMulti, multi(subs...))
		}
		same(t, "after a crash", crashed(t, file, ttls), s)
		var b bytes.Buffer
		if err := s.Snapshot(&b); err != nil {
			t.Fatal(err)
		}
		restored := start(t, ttls)
		if err := restored.Restore(&b); err != nil {
			t.Fatal(err)
		}
		same(t, "restored", restored, s)
	}
}

// TestTheFileStaysSmall: changes that others have overtaken do not stay in it.
func TestTheFileStaysSmall(t *testing.T) {
	s, file := onFile(t, zkserver.Config{})
	r := session(t, s, 10*time.Second)
	r.create("/big", 0)
	data := strings.Repeat("x", 1<<20-1000)
	most := int64(0)
	for range 2 * zkserver.RewriteFloor >> 20 {
		r.want(0, zkserver.OpSetData, rec{}.str("/big").str(data).i32(-1))
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, info.Size())
	}
	if most > zkserver.RewriteFloor+3<<20 {
		t.Errorf("it grew to %d bytes for one megabyte", most)
	}
	same(t, "after a crash", crashed(t, file, zkserver.Config{}), s)
	if left, err := os.Stat(file + ".new"); err == nil {
		t.Errorf("%s is left", left.Name())
	}
}

func TestOneServerAFile(t *testing.T) {
	s, file := onFile(t, zkserver.Config{})
	if second, err := zkserver.New(zkserver.Config{DataFile: file}); err == nil || !strings.Contains(err.Error(), "another server uses it") {
		if err == nil {
			second.Close()
		}
		t.Errorf("%v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, zkserver.Config{DataFile: file})
}

// TestDamage changes each byte, and leaves out each end, of a file.
func TestDamage(t *testing.T) {
	s, file := onFile(t, zkserver.Config{})
	fresh, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := session(t, s, 10*time.Second)
	r.create("/a", 0)
	r.create("/b", 1)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	try := func(b []byte) (*zkserver.Server, error) {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := zkserver.New(zkserver.Config{DataFile: file})
		if err != nil {
			if after, _ := os.ReadFile(file); !bytes.Equal(after, b) {
				t.Fatal("a file that was refused has been changed")
			}
			return nil, err
		}
		return s, s.Close()
	}
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 0x41
		if _, err := try(b); !errors.Is(err, zkserver.ErrCorrupt) || !strings.Contains(err.Error(), file) {
			t.Fatalf("byte %d of %d changed: %v", i, len(whole), err)
		}
	}
	last := int64(0)
	for n := range whole {
		s, err := try(whole[:n])
		switch {
		case n == 0 && err != nil:
			t.Fatalf("an empty file: %v", err)
		case n > 0 && n < len(fresh):
			if !errors.Is(err, zkserver.ErrCorrupt) {
				t.Fatalf("%d bytes of %d, of which %d are the snapshot: %v", n, len(whole), len(fresh), err)
			}
		case n >= len(fresh):
			if err != nil || s.Zxid() < last {
				t.Fatalf("%d bytes of %d: %v", n, len(whole), err)
			}
			last = s.Zxid()
		}
	}
	if last != 2 { // the session and /a: the last frame was cut
		t.Errorf("zxid %d", last)
	}
	// What was cut off is not in the way of what comes.
	if err := os.WriteFile(file, whole[:len(whole)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	s = start(t, zkserver.Config{DataFile: file})
	if err := s.Create("/c", nil); err != nil {
		t.Fatal(err)
	}
	next := crashed(t, file, zkserver.Config{})
	same(t, "behind a torn end", next, s)
	s.Close()

	newer := append([]byte("zkserver"), 0, 0, 0, 2)
	newer = binary.BigEndian.AppendUint32(newer, crc32.Checksum(newer, crc32.MakeTable(crc32.Castagnoli)))
	if _, err := try(append(newer, 1, 2, 3)); !errors.Is(err, zkserver.ErrNewerFormat) {
		t.Errorf("%v", err)
	}
	if _, err := try([]byte("# not ours, but somebody's\n")); !errors.Is(err, zkserver.ErrCorrupt) {
		t.Errorf("%v", err)
	}
	if _, err := zkserver.New(zkserver.Config{DataFile: t.TempDir()}); err == nil {
		t.Error("a directory was accepted")
	}
	if _, err := zkserver.New(zkserver.Config{DataFile: filepath.Join(file, "x")}); err == nil {
		t.Error("a file in a file was accepted")
	}
}
