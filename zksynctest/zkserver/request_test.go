package zkserver

import (
	"bytes"
	"math"
	"slices"
	"testing"
)

// The decoder returns for every input, and allocates nothing for counts and lengths that exceed the frame. FuzzDecode
// wants the decoder to survive anything, and not to allocate for counts and lengths that the frame cannot hold.
func FuzzDecode(f *testing.F) {
	path := appendString(nil, "/a")
	create := appendInt32(appendACLs(appendBuffer(bytes.Clone(path), []byte("x")), openACL), 1)
	f.Add(int32(OpCreate), create)
	f.Add(int32(OpCreateTTL), appendInt64(bytes.Clone(create), 1))
	f.Add(int32(OpDelete), appendInt32(bytes.Clone(path), -1))
	f.Add(int32(OpGetData), append(bytes.Clone(path), 1))
	f.Add(int32(OpMulti), appendMultiHeader(append(appendMultiHeader(nil, OpCreate, false, -1), create...), opError, true, -1))
	f.Add(int32(OpMultiRead), appendMultiHeader(append(append(appendMultiHeader(nil, OpGetData, false, -1), path...), 0), opError, true, -1))
	f.Add(int32(OpSetWatches), appendInt32(appendInt64(nil, 1), math.MaxInt32))
	f.Add(int32(OpSetWatches2), bytes.Repeat([]byte{0}, 28))
	for _, op := range []OpCode{OpAddWatch, OpCheckWatches, OpRemoveWatches, OpGetAllChildrenNumber, OpGetEphemerals, OpSASL, OpReconfig} {
		f.Add(int32(op), appendInt32(bytes.Clone(path), 1))
	}
	f.Add(int32(OpSetACL), appendInt32(bytes.Clone(path), math.MaxInt32))
	f.Add(int32(OpConnect), make([]byte, 44))
	f.Add(int32(OpAuth), appendInt32(nil, math.MinInt32))
	f.Fuzz(func(t *testing.T, op int32, frame []byte) {
		before := bytes.Clone(frame)
		r := request{op: OpCode(op)}
		r.decode(&decoder{b: frame})
		if !bytes.Equal(frame, before) {
			t.Fatal("the decoder wrote to its frame")
		}
		if r.bad && (r.path != "" || len(r.subs) > 0) {
			t.Fatalf("parts of a bad record are left: %+v", r)
		}
		// A byte that is no UTF-8 becomes three, as on a real server.
		n := len(r.acl)*12 + len(r.subs)*9 + (len(r.path)+2)/3
		for _, paths := range r.rearm {
			n += len(paths) * 4
		}
		if n > len(frame) {
			t.Fatalf("%d bytes made of %d", n, len(frame))
		}
		// Nothing else may remain of a request when its place is used again.
		r.op = OpPing
		r.decode(&decoder{})
		if r.bad || r.path != "" || len(r.acl) > 0 || len(r.subs) > 0 {
			t.Fatalf("%+v", r)
		}
	})
}

// A sequential name is the prefix and the number with ten digits, or the sign and nine.
func TestSequenceName(t *testing.T) {
	for n, want := range map[int32]string{
		0: "x0000000000", 7: "x0000000007", math.MaxInt32: "x2147483647",
		-1: "x-000000001", math.MinInt32: "x-2147483648",
	} {
		if got := sequenceName("x", n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// Exactly the paths that a real server accepts are valid.
func TestValidPath(t *testing.T) {
	for _, path := range []string{"/", "/a", "/a/b", "/...", "/a b", "/ä/世", "/.a", "/a./b", "/\uf900", "/\uffef"} {
		if !validPath(path) {
			t.Errorf("%q is refused", path)
		}
	}
	for _, path := range []string{
		"", "a", "//", "/a/", "/a//b", "/.", "/..", "/a/./b", "/../a", "/\x00", "/\x1f", "/\x7f", "/\u009f",
		"/\ue000", "/\uf8ff", "/\ufff0", "/\U00010000", "/\xc3", "/\xed\xa0\x80",
	} {
		if validPath(path) {
			t.Errorf("%q is accepted", path)
		}
	}
}

// The passwords of sessions are those of java.util.Random, which a real server uses.
func TestPasswords(t *testing.T) {
	a, b := passwordOf(1), passwordOf(2)
	if a == b || a != passwordOf(1) || slices.Equal(a[:], make([]byte, 16)) {
		t.Fatalf("%x %x", a, b)
	}
}
