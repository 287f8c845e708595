package zkserver

import (
	"encoding/binary"
	"math"
	"unicode/utf16"
	"unicode/utf8"
)

// decoder reads the primitives of a record from a frame. The first thing that
// does not fit makes it bad, and everything after that reads as zero, so that
// callers check once at the end. What it returns as bytes aliases the frame.
type decoder struct {
	b    []byte
	bad  bool
	tree *tree // whose paths are shared, if it is given
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

func (d *decoder) int32() int32 {
	if p := d.take(4); p != nil {
		return int32(binary.BigEndian.Uint32(p))
	}
	return 0
}

func (d *decoder) int64() int64 {
	if p := d.take(8); p != nil {
		return int64(binary.BigEndian.Uint64(p))
	}
	return 0
}

func (d *decoder) bool() bool {
	p := d.take(1)
	return p != nil && p[0] != 0
}

// buffer reads a byte buffer; nil is the null buffer, which is not the empty one.
func (d *decoder) buffer() []byte {
	n := d.int32()
	if d.bad || n == -1 {
		return nil
	}
	if n == 0 {
		return []byte{}
	}
	return d.take(int(n))
}

// str reads a string that must not be null.
func (d *decoder) str() string {
	n := d.int32()
	if n < 0 {
		d.bad = true
	}
	return d.share(d.take(int(n)))
}

// path reads a string that may be null, which only some operations mind.
func (d *decoder) path() (path string, null bool) {
	b := d.buffer()
	return d.share(b), b == nil
}

// share makes a string of a path, or finds the one that is there.
func (d *decoder) share(b []byte) string {
	if d.tree != nil {
		if n := d.tree.nodes[string(b)]; n != nil && len(n.path) == len(b) {
			return n.path
		}
	}
	return javaString(b)
}

// javaString is what a Java server makes of a string, and sends back: U+FFFD for
// what is no UTF-8, and what is beyond 16 bits as two surrogates of three bytes
// each. No znode can have such a name, but a client may ask for it.
func javaString(b []byte) string {
	plain := true
	for _, c := range b {
		plain = plain && c < utf8.RuneSelf
	}
	if plain {
		return string(b)
	}
	var out []byte
	for _, r := range string(b) {
		if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
			out = appendSurrogate(appendSurrogate(out, high), low)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return string(out)
}

func appendSurrogate(b []byte, r rune) []byte {
	return append(b, 0xe0|byte(r>>12), 0x80|byte(r>>6&0x3f), 0x80|byte(r&0x3f))
}

// nullableStr reads a string for which null and empty are the same. What nearly
// every ACL says is not made anew.
func (d *decoder) nullableStr() string {
	switch b := d.buffer(); string(b) {
	case "world":
		return "world"
	case "anyone":
		return "anyone"
	default:
		return javaString(b)
	}
}

// count reads the length of a vector whose items take at least size bytes each.
// What could not possibly be in the rest of the frame is refused before anything
// is allocated for it.
func (d *decoder) count(size int) int {
	n := int(d.int32())
	if n == -1 {
		return 0
	}
	if n < 0 || n > len(d.b)/size {
		d.bad = true
		return 0
	}
	return n
}

// strs reads a list that must not be null.
func (d *decoder) strs() []string {
	if len(d.b) >= 4 && binary.BigEndian.Uint32(d.b) == math.MaxUint32 {
		d.bad = true
	}
	n := d.count(4)
	if n == 0 {
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, d.str())
		if d.bad {
			return nil
		}
	}
	return list
}

// acls appends to list.
func (d *decoder) acls(list []ACL) []ACL {
	for range d.count(12) {
		list = append(list, ACL{Perms: d.int32(), Scheme: d.nullableStr(), ID: d.nullableStr()})
		if d.bad {
			return nil
		}
	}
	return list
}

func appendInt32(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }

func appendInt64(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendString(b []byte, s string) []byte {
	return append(appendInt32(b, int32(len(s))), s...)
}

// appendBuffer writes nil as the null buffer.
func appendBuffer(b, data []byte) []byte {
	if data == nil {
		return appendInt32(b, -1)
	}
	return append(appendInt32(b, int32(len(data))), data...)
}

func appendACLs(b []byte, list []ACL) []byte {
	b = appendInt32(b, int32(len(list)))
	for _, a := range list {
		b = appendInt32(b, a.Perms)
		b = appendString(b, a.Scheme)
		b = appendString(b, a.ID)
	}
	return b
}

// appendHeader begins a frame with room for its length and a reply header.
// endFrame fills in the length.
func appendHeader(b []byte, xid int32, zxid int64, code Code) []byte {
	b = append(b, 0, 0, 0, 0)
	b = appendInt32(b, xid)
	b = appendInt64(b, zxid)
	return appendInt32(b, int32(code))
}

func endFrame(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}
