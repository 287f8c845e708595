package jute

import (
	"bytes"
	"math"
	"testing"
)

// The decoder returns for every input, and allocates nothing for counts and lengths that exceed the frame. FuzzDecode
// wants the decoder to survive anything, and not to allocate for counts and lengths that the frame cannot hold.
func FuzzDecode(f *testing.F) {
	path := AppendString(nil, "/a")
	create := AppendInt32(AppendACLs(AppendBuffer(bytes.Clone(path), []byte("x")), OpenACL), 1)
	f.Add(int32(OpCreate), create)
	f.Add(int32(OpCreateTTL), AppendInt64(bytes.Clone(create), 1))
	f.Add(int32(OpDelete), AppendInt32(bytes.Clone(path), -1))
	f.Add(int32(OpGetData), append(bytes.Clone(path), 1))
	f.Add(int32(OpMulti), AppendMultiHeader(append(AppendMultiHeader(nil, OpCreate, false, -1), create...), OpError, true, -1))
	f.Add(int32(OpMultiRead), AppendMultiHeader(append(append(AppendMultiHeader(nil, OpGetData, false, -1), path...), 0), OpError, true, -1))
	f.Add(int32(OpSetWatches), AppendInt32(AppendInt64(nil, 1), math.MaxInt32))
	f.Add(int32(OpSetWatches2), bytes.Repeat([]byte{0}, 28))
	for _, op := range []OpCode{OpAddWatch, OpCheckWatches, OpRemoveWatches, OpGetAllChildrenNumber, OpGetEphemerals, OpSASL, OpReconfig} {
		f.Add(int32(op), AppendInt32(bytes.Clone(path), 1))
	}
	f.Add(int32(OpSetACL), AppendInt32(bytes.Clone(path), math.MaxInt32))
	f.Add(int32(OpConnect), make([]byte, 44))
	f.Add(int32(OpAuth), AppendInt32(nil, math.MinInt32))
	f.Fuzz(func(t *testing.T, op int32, frame []byte) {
		before := bytes.Clone(frame)
		r := Request{Op: OpCode(op)}
		r.Decode(&Decoder{Rest: frame})
		if !bytes.Equal(frame, before) {
			t.Fatal("the decoder wrote to its frame")
		}
		if r.Bad && (r.Path != "" || len(r.Subs) > 0) {
			t.Fatalf("parts of a bad record are left: %+v", r)
		}
		// A byte that is no UTF-8 becomes three, as on a real server.
		n := len(r.ACL)*12 + len(r.Subs)*9 + (len(r.Path)+2)/3
		for _, paths := range r.Rearm {
			n += len(paths) * 4
		}
		if n > len(frame) {
			t.Fatalf("%d bytes made of %d", n, len(frame))
		}
		// Nothing else may remain of a request when its place is used again.
		r.Op = OpPing
		r.Decode(&Decoder{})
		if r.Bad || r.Path != "" || len(r.ACL) > 0 || len(r.Subs) > 0 {
			t.Fatalf("%+v", r)
		}
	})
}

// A vector of a negative length is empty, as a Java server reads it, and a vector that is longer than its frame is not read.
func TestVectorsOfStrangeLengths(t *testing.T) {
	for length, want := range map[int32]bool{-1: false, -2: false, 0: false, 1: true, 1 << 30: true} {
		d := Decoder{Rest: AppendInt32(nil, length)}
		if list := d.ACLs(nil); len(list) > 0 || d.Bad != want {
			t.Errorf("length %d: %v, malformed %v, want %v", length, list, d.Bad, want)
		}
	}
}
