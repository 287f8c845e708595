package zkserver_test

import (
	"encoding/binary"
	"io"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// No input on a connection makes the server panic, hang or leak, and the server still serves other
// clients. FuzzConnection sends arbitrary input to a connection, as bytes or as requests. It runs
// in a bubble, which does not end while a goroutine is left, and whose clock shows if any client
// had to wait.
func FuzzConnection(f *testing.F) {
	const asBytes, inSession, asSuper, old = 1, 2, 4, 8
	add := func(how byte, requests ...rec) {
		var b []byte
		for _, r := range requests {
			b = append(append(b, byte(len(r)>>8), byte(len(r))), r...)
		}
		f.Add(how, b)
	}
	ask := func(op zkserver.OpCode, body rec) rec { return append(rec{}.i32(1, int32(op)), body...) }
	path, watched := rec{}.str("/a"), watchRec("/a")
	add(inSession,
		ask(zkserver.OpAddWatch, watchTypeRec("/", recursiveMode)), ask(zkserver.OpAddWatch, watchTypeRec("/a", persistentMode)),
		ask(zkserver.OpCreate, createRec("/a", "x", 0)), ask(zkserver.OpGetData, watched), ask(zkserver.OpGetChildren2, watched),
		ask(zkserver.OpCheckWatches, watchTypeRec("/a", persistentType)), ask(zkserver.OpSetData, setRec("/a")),
		ask(zkserver.OpRemoveWatches, watchTypeRec("/a", anyType)), ask(zkserver.OpDelete, deleteRec("/a")))
	add(inSession, ask(zkserver.OpSetWatches2, rec{}.i64(0).strs("/a").strs("/b").strs("/").strs("/").strs("/c")),
		ask(zkserver.OpSetWatches, rec{}.i64(0).strs().strs("/a").strs()),
		ask(zkserver.OpCreate2, createRec("/a", "", 3)), ask(zkserver.OpExists, watched), ask(zkserver.OpSync, path))
	add(inSession, ask(zkserver.OpCreateContainer, containerRec("/c")), ask(zkserver.OpCreateTTL, ttlRec("/t", time.Second)),
		ask(zkserver.OpGetEphemerals, path), ask(zkserver.OpGetAllChildrenNumber, path), ask(zkserver.OpWhoAmI, nil),
		ask(zkserver.OpReconfig, rec{}.str("").str("").str("").i64(-1)), ask(zkserver.OpSASL, rec{}.str("t")),
		ask(zkserver.OpDeleteContainer, path), ask(zkserver.OpGetACL, path), ask(zkserver.OpSetACL, append(path, open()...).i32(-1)))
	add(inSession|asSuper, ask(zkserver.OpMulti, multi(sub(zkserver.OpCreate, createRec("/a", "", 2)),
		sub(zkserver.OpSetData, setRec("/")), sub(zkserver.OpCheck, rec{}.str("/").i32(1)), sub(zkserver.OpDelete, deleteRec("/a")),
		sub(zkserver.OpCreateTTL, ttlRec("/t", time.Second)), sub(zkserver.OpCreateContainer, containerRec("/c")))),
		ask(zkserver.OpMultiRead, multi(sub(zkserver.OpGetData, watched), sub(zkserver.OpGetChildren, watched))),
		ask(zkserver.OpCreate, createRec("/zookeeper/quota/a", "", 0)),
		ask(zkserver.OpCreate, createRec("/zookeeper/quota/a/zookeeper_limits", "count=1,bytes=1=;countHardLimit=1", 0)),
		ask(zkserver.OpCreate, createRec("/zookeeper/quota/a/zookeeper_stats", "", 0)),
		ask(zkserver.OpAuth, rec{}.i32(0).str("digest").str("a:b")), ask(zkserver.OpCloseSession, nil))
	hello := rec{}.i32(0).i64(0).i32(10000).i64(0).str(string(make([]byte, 16)))
	add(old, hello, ask(zkserver.OpPing, nil))
	for _, word := range []string{"srvr", "mntr", "stmk12345678", "stmk1", "dump", "cons", "wchp", "zzzz"} {
		f.Add(byte(asBytes), []byte(word))
	}
	f.Add(byte(asBytes|inSession), []byte{0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 11, 0xff, 0xff, 0xff, 0xff})

	f.Fuzz(func(t *testing.T, how byte, input []byte) {
		bounds.Bubble(t, func(t *testing.T) {
			s := start(t, zkserver.Config{
				MaxFrame: 4096, OpsKept: 16, ExtendedTypes: true, EnforceQuota: true, FourLetterWords: []string{"*"},
				SuperDigest: "super:D/InIHSb7yEEbrWz8b9l71RjZJU=", Compat38: how&old != 0,
			})
			other := session(t, s, 10*time.Second)
			r := rawDial(t, s)
			if how&inSession != 0 {
				r.hello(0, 10*time.Second, 0, "")
				r.welcome()
				if how&asSuper != 0 {
					r.want(0, zkserver.OpAuth, rec{}.i32(0).str("digest").str("super:test"))
				}
			}
			begin, sent := time.Now(), fuzzInput(how&asBytes != 0, input)
			go func() {
				_, _ = r.nc.Write(sent) // the server may have closed the connection
				_ = r.nc.(interface{ CloseWrite() error }).CloseWrite()
			}()
			got, err := io.ReadAll(r.nc)
			if err != nil {
				t.Fatal(err)
			}
			checkFrames(t, got, len(sent), how&inSession != 0)
			other.want(0, zkserver.OpExists, rec{}.str("/zookeeper").flag(false))
			if d := time.Since(begin); d > 0 {
				t.Fatalf("somebody waited for %v", d)
			}
			for _, sess := range s.Sessions() {
				if err := s.ExpireSession(sess.ID); err != nil {
					t.Fatal(err)
				}
			}
			if n := s.Watches(); n != 0 {
				t.Fatalf("%d watches left", n)
			}
		})
	})
}

// fuzzInput returns the bytes to send: the input itself, or its requests, each of which follows its
// length in two bytes.
func fuzzInput(asBytes bool, input []byte) []byte {
	if asBytes {
		return input
	}
	var sent rec
	for len(input) >= 2 {
		n := min(int(binary.BigEndian.Uint16(input)), len(input)-2)
		sent = append(sent.i32(int32(n)), input[2:2+n]...)
		input = input[2+n:]
	}
	return sent
}

// checkFrames checks that the answer consists of whole frames, and that its length is plausible for
// the length of the input.
func checkFrames(t *testing.T, got []byte, sent int, inSession bool) {
	t.Helper()
	if len(got) > 64<<10+sent*sent {
		t.Fatalf("%d bytes in answer to %d", len(got), sent)
	}
	for inSession && len(got) > 0 {
		if len(got) < 4 || int(binary.BigEndian.Uint32(got)) > len(got)-4 || binary.BigEndian.Uint32(got) < 16 {
			t.Fatalf("half a frame: % x", got)
		}
		got = got[4+binary.BigEndian.Uint32(got):]
	}
}
