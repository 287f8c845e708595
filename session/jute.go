package session

import (
	"encoding/binary"
	"iter"

	"github.com/go-zookeeper/zk"
)

// The operations that this package puts on the wire.
const (
	opCreate          int32 = 1
	opDelete          int32 = 2
	opExists          int32 = 3
	opGetData         int32 = 4
	opSetData         int32 = 5
	opGetChildren     int32 = 8
	opSync            int32 = 9
	opPing            int32 = 11
	opGetChildren2    int32 = 12
	opCheck           int32 = 13
	opMulti           int32 = 14
	opCreate2         int32 = 15
	opRemoveWatches   int32 = 18
	opCreateContainer int32 = 19
	opMultiRead       int32 = 22
	opAuth            int32 = 100
	opSetWatches      int32 = 101
	opSASL            int32 = 102
	opCloseSession    int32 = -11
)

// opNames are the names of operations in errors, log lines and events.
var opNames = map[int32]string{
	opCreate: "create", opCreateContainer: "create", opDelete: "delete", opExists: "exists", opGetData: "get",
	opSetData: "set", opSync: "sync", opGetChildren2: "children", opMulti: "multi", opMultiRead: "multiRead",
	opRemoveWatches: "removeWatches", opSetWatches: "setWatches", opPing: "ping", opCheck: "check", opSASL: "sasl",
}

// The codes that decide something here rather than being passed on.
const (
	codeUnimplemented int32 = -6
	codeNoNode        int32 = -101
	codeNoAuth        int32 = -102
	codeWantsSASL     int32 = -124
)

func appendInt(b []byte, v int32) []byte  { return binary.BigEndian.AppendUint32(b, uint32(v)) }
func appendLong(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

// The sizes in bytes of what the functions below append.
const (
	headerSize      = 8
	intSize         = 4
	boolSize        = 1
	multiHeaderSize = intSize + boolSize + intSize
)

func stringSize(s string) int { return intSize + len(s) }

func bufferSize(data []byte) int { return intSize + len(data) }

func aclSize(acl []zk.ACL) int {
	n := intSize
	for _, a := range acl {
		n += intSize + stringSize(a.Scheme) + stringSize(a.ID)
	}
	return n
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendString(b []byte, s string) []byte {
	return append(appendInt(b, int32(len(s))), s...)
}

// appendBuffer keeps the difference between no data and empty data.
func appendBuffer(b, data []byte) []byte {
	if data == nil {
		return appendInt(b, -1)
	}
	return append(appendInt(b, int32(len(data))), data...)
}

func appendStrings(b []byte, list []string) []byte {
	b = appendInt(b, int32(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func appendACL(b []byte, acl []zk.ACL) []byte {
	b = appendInt(b, int32(len(acl)))
	for _, a := range acl {
		b = appendInt(b, a.Perms)
		b = appendString(b, a.Scheme)
		b = appendString(b, a.ID)
	}
	return b
}

// A decoder reads an answer's body. The first thing that does not fit sets
// bad, and everything read after that is zero.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n int) []byte {
	if d.bad || n < 0 || n > len(d.b) {
		d.bad = true
		return nil
	}
	p := d.b[:n:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) int() int32 {
	if p := d.take(4); p != nil {
		return int32(binary.BigEndian.Uint32(p))
	}
	return 0
}

func (d *decoder) long() int64 {
	if p := d.take(8); p != nil {
		return int64(binary.BigEndian.Uint64(p))
	}
	return 0
}

func (d *decoder) bool() bool {
	p := d.take(1)
	return p != nil && p[0] != 0
}

func (d *decoder) buffer() []byte {
	n := d.int()
	if n == -1 {
		return nil
	}
	return d.take(int(n))
}

func (d *decoder) string() string { return string(d.buffer()) }

func (d *decoder) strings() []string {
	n := int(d.int())
	// Each element takes four bytes at least, so a count that a broken frame
	// claims cannot make us allocate more than the frame is long.
	if n <= 0 || n > len(d.b)/4 {
		d.bad = d.bad || n > 0
		return []string{}
	}
	list := make([]string, 0, n)
	if len(d.b) < largeList {
		for range n {
			list = append(list, d.string())
		}
		return list
	}
	for len(list) < n && !d.bad {
		block, names := d.b, 0
		for len(list)+names < n && len(block)-len(d.b) < nameBlock && !d.bad {
			d.buffer()
			names++
		}
		if d.bad {
			break
		}
		for name := range namesIn(string(block[:len(block)-len(d.b)])) {
			list = append(list, name)
		}
	}
	return list
}

// The names of a list of at least largeList bytes share strings of about nameBlock
// bytes: millions of small strings would take several times the memory of the list. A
// caller that keeps one name keeps its block.
const (
	largeList = 64 << 10
	nameBlock = 4 << 10
)

// namesIn yields the strings that a part of an answer consists of.
func namesIn(all string) iter.Seq[string] {
	return func(yield func(string) bool) {
		rest := all
		for len(rest) > 0 {
			size := int32(binary.BigEndian.Uint32([]byte(rest[:intSize])))
			end := intSize + max(0, int(size))
			if !yield(rest[intSize:end]) {
				return
			}
			rest = rest[end:]
		}
	}
}

// list is strings without a slice, and with one allocation for all.
func (d *decoder) list() iter.Seq[string] {
	n := d.int()
	start := d.b
	for range n {
		if d.buffer(); d.bad {
			return func(func(string) bool) {}
		}
	}
	return namesIn(string(start[:len(start)-len(d.b)]))
}

func (d *decoder) stat() *zk.Stat {
	return &zk.Stat{
		Czxid: d.long(), Mzxid: d.long(), Ctime: d.long(), Mtime: d.long(),
		Version: d.int(), Cversion: d.int(), Aversion: d.int(),
		EphemeralOwner: d.long(), DataLength: d.int(), NumChildren: d.int(), Pzxid: d.long(),
	}
}
