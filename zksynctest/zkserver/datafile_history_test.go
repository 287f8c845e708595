package zkserver_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A server that starts from a DataFile has the tree and the sessions that the history left in the first server.
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

// The DataFile does not keep changes that later changes have replaced.
func TestTheFileStaysSmall(t *testing.T) {
	s, file := onFile(t, zkserver.Config{})
	r := session(t, s, 10*time.Second)
	r.create("/big", 0)
	data := strings.Repeat("x", 1<<20-1000)
	most, files := int64(0), 1
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * zkserver.RewriteFloor >> 20 {
		r.want(0, zkserver.OpSetData, rec{}.str("/big").str(data).i32(-1))
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if !os.SameFile(before, info) {
			files++
		}
		before, most = info, max(most, info.Size())
	}
	if most > zkserver.RewriteFloor+3<<20 {
		t.Errorf("it grew to %d bytes for one megabyte", most)
	}
	if files > 3 {
		t.Errorf("%d files were written for 32 changes of a megabyte", files)
	}
	same(t, "after a crash", crashed(t, file, zkserver.Config{}), s)
	if left, err := os.Stat(zkserver.SnapshotName(file)); err == nil {
		t.Errorf("%s is left", left.Name())
	}
}
