package zkserver_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// multi builds a multi from its operations.
func multi(subs ...rec) rec {
	var b rec
	for _, sub := range subs {
		b = append(b, sub...)
	}
	return b.i32(-1).flag(true).i32(-1)
}

func sub(op zkserver.OpCode, body rec) rec {
	return append(rec{}.i32(int32(op)).flag(false).i32(-1), body...)
}

type multiHead struct {
	kind zkserver.OpCode
	done bool
	code int32
}

func (r *reading) multiHead() multiHead {
	r.t.Helper()
	return multiHead{zkserver.OpCode(r.i32()), r.take(1)[0] != 0, r.i32()}
}

// results reads the error codes of a failed multi.
func (r *reading) results() []int32 {
	r.t.Helper()
	var codes []int32
	for {
		h := r.multiHead()
		if h.done {
			if h.kind != -1 || h.code != -1 || len(r.b) != 0 {
				r.t.Fatalf("end of multi %+v, %d bytes behind", h, len(r.b))
			}
			return codes
		}
		if h.kind != -1 || r.i32() != h.code {
			r.t.Fatalf("result %+v", h)
		}
		codes = append(codes, h.code)
	}
}

// A multi answers each operation with its own result, in order.
func TestMultiResults(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.create("/q", 0)
		before := s.Zxid()
		p := r.want(0, zkserver.OpMulti, multi(
			sub(zkserver.OpCreate, createRec("/q/s-", "", 2)),
			sub(zkserver.OpCreate2, createRec("/q/s-", "ab", 3)),
			sub(zkserver.OpSetData, rec{}.str("/q").str("x").i32(0)),
			sub(zkserver.OpCheck, rec{}.str("/q").i32(1)),
			sub(zkserver.OpDelete, rec{}.str("/q/s-0000000000").i32(0)),
			sub(zkserver.OpCreateContainer, createRec("/q/c", "", 4)),
		))
		head := func(kind zkserver.OpCode) {
			t.Helper()
			if h := p.multiHead(); h != (multiHead{kind, false, 0}) {
				t.Fatalf("%+v, want %v", h, kind)
			}
		}
		head(zkserver.OpCreate)
		if path := p.str(); path != "/q/s-0000000000" {
			t.Fatal(path)
		}
		head(zkserver.OpCreate2)
		if path, st := p.str(), p.stat(); path != "/q/s-0000000001" || st.owner != r.id || st.czxid != before+1 {
			t.Fatalf("%s %+v", path, st)
		}
		head(zkserver.OpSetData)
		if st := p.stat(); st.version != 1 || st.children != 2 {
			t.Fatalf("%+v", st)
		}
		head(zkserver.OpCheck)
		head(zkserver.OpDelete)
		head(zkserver.OpCreate2)
		if path := p.str(); path != "/q/c" {
			t.Fatal(path)
		}
		p.stat()
		if rest := p.results(); len(rest) != 0 {
			t.Fatal(rest)
		}
		if s.Zxid() != before+1 || p.zxid != before+1 {
			t.Fatalf("zxid %d, answered %d, before %d", s.Zxid(), p.zxid, before)
		}
		if rest := r.want(0, zkserver.OpMulti, multi()).results(); len(rest) != 0 || s.Zxid() != before+2 {
			t.Fatal("the empty multi")
		}
	})
}

// A multi that fails changes nothing and fires no watch.
func TestMultiRollsBack(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.create("/q", 0)
		r.create("/q/old", 1)
		r.want(0, zkserver.OpGetChildren, rec{}.str("/q").flag(true))
		r.want(0, zkserver.OpGetData, rec{}.str("/q").flag(true))
		before, dump, owned := r.stat("/q"), s.Dump(), s.Sessions()[0].Ephemerals
		p := r.want(0, zkserver.OpMulti, multi(
			sub(zkserver.OpCreate, createRec("/q/s-", "", 2)),
			sub(zkserver.OpCreate, createRec("/q/s-0000000001/x", "", 1)),
			sub(zkserver.OpSetData, rec{}.str("/q").str("x").i32(0)),
			sub(zkserver.OpSetData, rec{}.str("/q/old").str("y").i32(0)),
			sub(zkserver.OpDelete, rec{}.str("/q/old").i32(1)),
			sub(zkserver.OpCheck, rec{}.str("/q").i32(7)),
			sub(zkserver.OpCreate, createRec("/q/never", "", 0)),
		))
		got := p.results()
		want := []int32{0, 0, 0, 0, 0, -103, -2}
		if len(got) != len(want) {
			t.Fatal(got)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%v, want %v", got, want)
			}
		}
		if after := r.stat("/q"); after != before {
			t.Fatalf("%+v, before %+v", after, before)
		}
		if s.Dump() != dump {
			t.Fatalf("from\n%s to\n%s", dump, s.Dump())
		}
		if got := s.Sessions()[0].Ephemerals; len(got) != 1 || got[0] != owned[0] {
			t.Fatalf("ephemerals %v, before %v", got, owned)
		}
		// No watch has fired so far, and the sequence number is given again.
		if s.Watches() != 2 {
			t.Fatalf("%d watches", s.Watches())
		}
		r.send(zkserver.OpCreate, createRec("/q/s-", "", 2))
		if ev := r.event(); ev != (event{4, "/q"}) {
			t.Fatalf("%v", ev)
		}
		if got := r.recv().str(); got != "/q/s-0000000001" {
			t.Fatalf("%q", got)
		}
	})
}

// A malformed multi is answered with MarshallingError and changes nothing.
func TestMultiThatCannotBeRead(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		get := sub(zkserver.OpGetData, rec{}.str("/").flag(false))
		set := sub(zkserver.OpSetData, rec{}.str("/").str("").i32(-1))
		runAsks(t, r, []ask{
			{"a read", zkserver.OpMulti, multi(get), zkserver.ErrMarshalling},
			{"mixed", zkserver.OpMulti, multi(set, get), zkserver.ErrMarshalling},
			{"unknown", zkserver.OpMulti, multi(sub(77, nil)), zkserver.ErrMarshalling},
			{"no end", zkserver.OpMulti, set, zkserver.ErrMarshalling},
		})
		r.wantHollow(0, zkserver.OpMultiRead, multi(set))
		r.wantHollow(0, zkserver.OpMultiRead, multi(get, sub(zkserver.OpGetData, rec{}.i32(-1).flag(false))))
		if v := r.stat("/").version; v != 0 {
			t.Fatalf("version %d: something was done", v)
		}
	})
}

// wantHollow sends a request that must fail with a record that ends like the record of a multi. If
// zxid is set, the reply header must have it.
func (r *raw) wantHollow(zxid int64, op zkserver.OpCode, body []byte) {
	r.t.Helper()
	p := r.call(op, body)
	if p.code != zkserver.ErrMarshalling || !bytes.HasSuffix(p.b, []byte("\xff\xff\xff\xff\x01\xff\xff\xff\xff")) {
		r.t.Fatalf("%v: code %v, record % x", op, p.code, p.b)
	}
	if zxid != 0 && p.zxid != zxid {
		r.t.Fatalf("%v: zxid %d, want %d", op, p.zxid, zxid)
	}
}

// Within a multi the flags of a create decide the kind of the znode, as in a real server.
func TestCreatesWithinAMulti(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{ExtendedTypes: true})
		r := session(t, s, 0)
		p := r.want(0, zkserver.OpMulti, multi(
			sub(zkserver.OpCreateContainer, createRec("/plain", "", 0)),
			sub(zkserver.OpCreate, createRec("/container", "", 4)),
			sub(zkserver.OpCreateTTL, createRec("/ttl", "", 5).i64(1000)),
			sub(zkserver.OpCreateTTL, createRec("/plain2", "", 0).i64(1000)),
		))
		for _, want := range []zkserver.OpCode{zkserver.OpCreate, zkserver.OpCreate2, zkserver.OpCreate2, zkserver.OpCreate} {
			h := p.multiHead()
			p.str()
			if want == zkserver.OpCreate2 {
				p.stat()
			}
			if h.kind != want {
				t.Fatalf("%+v, want %v", h, want)
			}
		}
		if n := strings.Count(s.Dump(), " container") + strings.Count(s.Dump(), " ttl=1s"); n != 2 {
			t.Fatal(s.Dump())
		}
		set := sub(zkserver.OpSetData, rec{}.str("/plain").str("x").i32(-1))
		r.want(zkserver.ErrMarshalling, zkserver.OpMulti, multi(set, sub(zkserver.OpCreate, createRec("/x", "", 5))))
		before := s.Zxid()
		r.wantHollow(before, zkserver.OpMulti, multi(set, sub(zkserver.OpDelete, rec{}.i32(-1, -1))))
		if p := r.want(zkserver.ErrNoNode, zkserver.OpDelete, rec{}.str("/none").i32(-1)); p.zxid != before+2 {
			t.Fatalf("zxid %d, want %d: the multi took one", p.zxid, before+2)
		}
		if v := r.stat("/plain").version; v != 0 {
			t.Fatalf("version %d: something was done", v)
		}
	})
}

// multiRead answers each read with its own result or error, and takes no zxid.
func TestMultiRead(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.want(0, zkserver.OpCreate, createRec("/a", "A", 0))
		before := s.Zxid()
		p := r.want(0, zkserver.OpMultiRead, multi(
			sub(zkserver.OpGetData, rec{}.str("/a").flag(false)),
			sub(zkserver.OpGetData, rec{}.str("/no").flag(false)),
			sub(zkserver.OpGetChildren, rec{}.str("/").flag(false)),
		))
		if h := p.multiHead(); h.kind != zkserver.OpGetData || p.str() != "A" || p.stat().dataLength != 1 {
			t.Fatalf("%+v", h)
		}
		if h := p.multiHead(); h.kind != -1 || h.code != -101 || p.i32() != -101 {
			t.Fatalf("%+v", h)
		}
		if h := p.multiHead(); h.kind != zkserver.OpGetChildren || len(p.strs()) != 2 {
			t.Fatalf("%+v", h)
		}
		if len(p.results()) != 0 || s.Zxid() != before {
			t.Fatal("a multiRead writes nothing")
		}
	})
}

// Sequence numbers within a multi overflow like in a real server.
func TestSequenceWithinAMultiWrapsAround(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.create("/q", 0)
		if err := s.SetNextSequence("/q", math.MaxInt32); err != nil {
			t.Fatal(err)
		}
		create := sub(zkserver.OpCreate, createRec("/q/s-", "", 2))
		p := r.want(0, zkserver.OpMulti, multi(create, create, create))
		for _, want := range []string{"/q/s-2147483647", "/q/s--2147483648", "/q/s--2147483647"} {
			p.multiHead()
			if got := p.str(); got != want {
				t.Fatalf("%q, want %q", got, want)
			}
		}
	})
}
