package zkserver_test

import (
	"math"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// ask is a request and its expected code.
type ask struct {
	name string
	op   zkserver.OpCode
	body rec
	want zkserver.Code
}

func runAsks(t *testing.T, r *raw, asks []ask) {
	t.Helper()
	for _, a := range asks {
		p := r.call(a.op, a.body)
		if p.code != a.want {
			t.Errorf("%s: %v, want %v", a.name, p.code, a.want)
		}
		if p.code != 0 && len(p.b) != 0 {
			t.Errorf("%s: a record behind the error: % x", a.name, p.b)
		}
	}
}

func createACL(path string, flags int32, acl ...any) rec {
	return append(rec{}.str(path).str(""), rec{}.acl(acl...)...).i32(flags)
}

// A create that is wrong in several ways returns the error that a real server returns.
func TestCreateChecksInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.create("/p", 0)
		r.create("/e", 1)
		r.create("/sq", 0)
		r.want(0, zkserver.OpCreate, createACL("/ro", 0, 1, "world", "anyone"))
		const create = zkserver.OpCreate
		runAsks(t, r, []ask{
			{"bad flags", create, createRec("/x", "", 7), zkserver.ErrBadArguments},
			{"bad flags before TTL", create, createRec("/x", "", -1), zkserver.ErrBadArguments},
			{"TTL not allowed", create, createRec("/x", "", 5), zkserver.ErrUnimplemented},
			{"no slash", create, createRec("x", "", 0), zkserver.ErrBadArguments},
			{"NUL", create, createRec("/x\x00", "", 0), zkserver.ErrBadArguments},
			{"empty acl before missing parent", create, createACL("/zz/e", 0), zkserver.ErrInvalidACL},
			{"missing parent before bad path", create, createRec("/a//b", "", 0), zkserver.ErrNoNode},
			{"no right before bad path", create, createRec("/ro/..", "", 0), zkserver.ErrNoAuth},
			{"bad path", create, createRec("/p/..", "", 0), zkserver.ErrBadArguments},
			{"slash at the end", create, createRec("/p/", "", 0), zkserver.ErrBadArguments},
			{"not UTF-8", create, createRec("/p/\xff", "", 0), zkserver.ErrBadArguments},
			{"private use", create, createRec("/p/\ue000", "", 0), zkserver.ErrBadArguments},
			{"beyond the BMP", create, createRec("/p/\U0001F512", "", 0), zkserver.ErrBadArguments},
			{"control", create, createRec("/p/\u0085", "", 0), zkserver.ErrBadArguments},
			{"fine unicode", create, createRec("/p/ä\u4e16", "", 0), 0},
			{"the root", create, createRec("/", "", 0), zkserver.ErrNodeExists},
			{"there already", create, createRec("/p", "", 0), zkserver.ErrNodeExists},
			{"below an ephemeral", create, createRec("/e/x", "", 0), zkserver.ErrNoChildrenForEphemerals},
			{"flag 4 is plain", create, createRec("/four", "", 4), 0},
			{"null path", create, append(rec{}.i32(-1).str(""), open()...).i32(0), zkserver.ErrMarshalling},
			{"cut short", create, rec{}.str("/x"), zkserver.ErrMarshalling},
			{"acl count beyond the frame", create, rec{}.str("/x").str("").i32(math.MaxInt32), zkserver.ErrMarshalling},
			{"null path, but bad flags", create, append(rec{}.i32(-1).str(""), open()...).i32(9), zkserver.ErrBadArguments},
			{"neither TTL flags nor ttl", zkserver.OpCreateTTL, createRec("/x", "", 0).i64(-1), zkserver.ErrBadArguments},
			{"and a bad acl", zkserver.OpCreateTTL, createACL("/x", 0).i64(-1), zkserver.ErrInvalidACL},
			{"TTL without TTL flags", zkserver.OpCreateTTL, createRec("/x", "", 0).i64(5), zkserver.ErrBadArguments},
		})
		if got := r.create("/sq/", 2); got != "/sq/0000000000" {
			t.Errorf("sequence without a prefix: %q", got)
		}
	})
}

// Each form of create accepts and refuses kinds of znodes and TTLs like a real server, and Dump
// shows the resulting tree.
func TestCreateKinds(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{ExtendedTypes: true})
		r := session(t, s, 0)
		const ttl = zkserver.OpCreateTTL
		runAsks(t, r, []ask{
			{"ttl 0", ttl, createRec("/t", "", 5).i64(0), zkserver.ErrBadArguments},
			{"ttl too long", ttl, createRec("/t", "", 5).i64(0xffffffffff + 1), zkserver.ErrBadArguments},
			{"ttl without create2", zkserver.OpCreate, createRec("/t", "", 5), zkserver.ErrBadArguments},
			{"ttl", ttl, createRec("/t", "", 5).i64(0xffffffffff), 0},
			{"below a TTL node", zkserver.OpCreate, createRec("/t/x", "", 0), 0},
			{"container with flags 0", zkserver.OpCreateContainer, createRec("/c", "", 0), 0},
			{"below a container", zkserver.OpCreate, createRec("/c/x", "", 1), 0},
		})
		p := r.want(0, zkserver.OpCreateTTL, createRec("/t/q-", "abc", 6).i64(1000))
		if path, st := p.str(), p.stat(); path != "/t/q-0000000001" || st.owner != 0 || st.dataLength != 3 {
			t.Errorf("%q %+v", path, st)
		}
		for _, path := range []string{"/t", "/c"} {
			if st := r.stat(path); st.owner != 0 {
				t.Errorf("%s has the owner %x", path, st.owner)
			}
		}
		if st := r.stat("/c/x"); st.owner != r.id {
			t.Errorf("owner %x, want %x", st.owner, r.id)
		}
		dump := s.Dump()
		for _, want := range []string{"/c version=0", " container\n", " ttl=1s \"abc\"\n"} {
			if !strings.Contains(dump, want) {
				t.Errorf("%q is missing in\n%s", want, dump)
			}
		}
	})
}

// A delete, setData, setACL or check that is wrong in several ways returns the error that a real server returns.
func TestOtherWritesCheckInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.create("/p", 0)
		r.create("/p/c", 0)
		r.want(0, zkserver.OpCreate, createACL("/ro", 0, 1, "world", "anyone"))
		v := func(path string, version int32) rec { return rec{}.str(path).i32(version) }
		set := func(path string, version int32) rec { return rec{}.str(path).str("x").i32(version) }
		acl := func(path string, version int32, entries ...any) rec {
			return append(rec{}.str(path), rec{}.acl(entries...)...).i32(version)
		}
		runAsks(t, r, []ask{
			{"delete without slash", zkserver.OpDelete, v("p", -1), zkserver.ErrBadArguments},
			{"delete null", zkserver.OpDelete, rec{}.i32(-1, -1), zkserver.ErrMarshalling},
			{"set null", zkserver.OpSetData, rec{}.i32(-1).str("").i32(-1), zkserver.ErrBadArguments},
			{"delete the root", zkserver.OpDelete, v("/", -1), zkserver.ErrBadArguments},
			{"delete what is reserved", zkserver.OpDelete, v("/zookeeper/quota", -1), zkserver.ErrBadArguments},
			{"delete without parent", zkserver.OpDelete, v("/no/x", -1), zkserver.ErrNoNode},
			{"delete without right", zkserver.OpDelete, v("/ro/x", -1), zkserver.ErrNoAuth},
			{"delete nothing", zkserver.OpDelete, v("/p/x", -1), zkserver.ErrNoNode},
			{"version before children", zkserver.OpDelete, v("/p", 3), zkserver.ErrBadVersion},
			{"delete with children", zkserver.OpDelete, v("/p", 0), zkserver.ErrNotEmpty},
			{"set a bad path", zkserver.OpSetData, set("/p/", -1), zkserver.ErrBadArguments},
			{"set nothing", zkserver.OpSetData, set("/p/x", -1), zkserver.ErrNoNode},
			{"set without right", zkserver.OpSetData, set("/ro", 9), zkserver.ErrNoAuth},
			{"set another version", zkserver.OpSetData, set("/p", 9), zkserver.ErrBadVersion},
			{"-2 is a version", zkserver.OpSetData, set("/p", -2), zkserver.ErrBadVersion},
			{"set", zkserver.OpSetData, set("/p", 0), 0},
			{"acl on a bad path", zkserver.OpSetACL, acl("p", -1), zkserver.ErrBadArguments},
			{"acl before node", zkserver.OpSetACL, acl("/no", -1), zkserver.ErrInvalidACL},
			{"acl of nothing", zkserver.OpSetACL, acl("/no", -1, 31, "world", "anyone"), zkserver.ErrNoNode},
			{"acl without right", zkserver.OpSetACL, acl("/ro", 9, 31, "world", "anyone"), zkserver.ErrNoAuth},
			{"acl version", zkserver.OpSetACL, acl("/p", 9, 31, "world", "anyone"), zkserver.ErrBadVersion},
			{"check alone", zkserver.OpCheck, v("/p", 1), 0},
			{"check version", zkserver.OpCheck, v("/p", 0), zkserver.ErrBadVersion},
			{"reconfig", zkserver.OpReconfig, rec{}.strs("", "", "")[4:].i64(-1), zkserver.ErrReconfigDisabled},
			{"reconfig cut short", zkserver.OpReconfig, nil, zkserver.ErrMarshalling},
		})
	})
}

// A read that is wrong in several ways returns the error that a real server returns.
func TestReadsCheckInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.want(0, zkserver.OpCreate, createACL("/wo", 0, 2, "world", "anyone"))
		watch := func(path string) rec { return rec{}.str(path).flag(false) }
		runAsks(t, r, []ask{
			{"exists with NUL", zkserver.OpExists, watch("/\x00"), zkserver.ErrBadArguments},
			{"exists garbage", zkserver.OpExists, watch("a//b"), zkserver.ErrNoNode},
			{"exists without right", zkserver.OpExists, watch("/wo"), zkserver.ErrNoAuth},
			{"getData garbage", zkserver.OpGetData, watch("a//b"), zkserver.ErrNoNode},
			{"getData without right", zkserver.OpGetData, watch("/wo"), zkserver.ErrNoAuth},
			{"getData of the root's other name", zkserver.OpGetData, watch(""), 0},
			{"getData of null", zkserver.OpGetData, rec{}.i32(-1).flag(false), zkserver.ErrMarshalling},
			{"getChildren without right", zkserver.OpGetChildren, watch("/wo"), zkserver.ErrNoAuth},
			{"getChildren2 of nothing", zkserver.OpGetChildren2, watch("/no"), zkserver.ErrNoNode},
			{"getACL without right", zkserver.OpGetACL, rec{}.str("/wo"), zkserver.ErrNoAuth},
			{"trailing bytes", zkserver.OpGetData, append(watch("/"), "more"...), 0},
		})
		if p := r.want(0, zkserver.OpSync, rec{}.str("any thing")); p.str() != "any thing" {
			t.Error("sync does not echo its path")
		}
	})
}

// Failed writes take a zxid exactly in the cases in which a real server takes one.
func TestZxidsAreTakenByFailedWrites(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		path := rec{}.str("/no")
		for i, step := range []struct {
			op    zkserver.OpCode
			body  rec
			taken int64
		}{
			{zkserver.OpCreate, createRec("/zookeeper", "", 0), 1},
			{zkserver.OpCreate, rec{}.str("/x"), 1},
			{zkserver.OpDelete, path.i32(-1), 1},
			{zkserver.OpSetData, path.str("").i32(-1), 1},
			{zkserver.OpMulti, rec{}.i32(99).flag(false).i32(-1), 1},
			{zkserver.OpGetData, path.flag(false), 0},
			{zkserver.OpExists, path, 0}, // cut short
			{zkserver.OpSync, path, 0},
			{zkserver.OpPing, nil, 0},
			{zkserver.OpSetWatches, rec{}.i64(0).strs().strs().strs(), 0},
		} {
			before := s.Zxid()
			p := r.call(step.op, step.body)
			if s.Zxid() != before+step.taken || p.zxid != s.Zxid() {
				t.Errorf("step %d, %v: from %d to %d, answered %d", i, step.op, before, s.Zxid(), p.zxid)
			}
		}
		if p := r.call(zkserver.OpAuth, rec{}.i32(0).str("digest").str("u:p")); p.zxid != 0 || p.code != 0 {
			t.Errorf("auth: %+v", p)
		}
	})
}

// Sequence numbers are the numbers of a real server, overflow in the same way, and continue from
// SetNextSequence.
func TestSequence(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.create("/q", 0)
		r.create("/q/x", 0)
		r.create("/q/e", 1)
		r.want(0, zkserver.OpDelete, rec{}.str("/q/e").i32(-1))
		if got := r.create("/q/n-", 2); got != "/q/n-0000000002" {
			t.Fatalf("%q: plain creates count too, deletes do not", got)
		}
		if err := s.SetNextSequence("/q", math.MaxInt32-1); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"/q/n-2147483646", "/q/n-2147483647"} {
			if got := r.create("/q/n-", 2); got != want {
				t.Fatalf("%q, want %q", got, want)
			}
		}
		r.want(zkserver.ErrNodeExists, zkserver.OpCreate, createRec("/q/n-", "", 2))
		r.want(0, zkserver.OpDelete, rec{}.str("/q/n-2147483647").i32(-1))
		if got := r.create("/q/n-", 2); got != "/q/n-2147483647" {
			t.Fatalf("%q", got)
		}
		for n, want := range map[int32]string{-3: "/q/m--000000003", math.MinInt32: "/q/m--2147483648"} {
			if err := s.SetNextSequence("/q", n); err != nil {
				t.Fatal(err)
			}
			if got := r.create("/q/m-", 2); got != want {
				t.Fatalf("%q, want %q", got, want)
			}
		}
		if s.SetNextSequence("/no", 1) == nil {
			t.Fatal("a counter without a node")
		}
	})
}
