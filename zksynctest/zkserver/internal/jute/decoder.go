package jute

import (
	"encoding/binary"
	"math"
	"unicode/utf16"
	"unicode/utf8"
)

// A Decoder reads the primitives of a record from a frame. The first value that does
// not fit sets bad, and every later value reads as zero, so that callers check bad once
// at the end. The bytes that a decoder returns alias the frame.
type Decoder struct {
	Rest  []byte
	Bad   bool
	Known Interner // nil if no strings are shared
	Exact bool     // strings are read as they are, and not as a Java server reads them
}

// An Interner has strings that need not be allocated again.
type Interner interface {
	// Intern returns the string with the bytes of b, and whether the table has that string.
	Intern(b []byte) (string, bool)
}

func (d *Decoder) Take(n int) []byte {
	if d.Bad || n < 0 || n > len(d.Rest) {
		d.Bad = true
		return nil
	}
	p := d.Rest[:n:n]
	d.Rest = d.Rest[n:]
	return p
}

func (d *Decoder) Int32() int32 {
	if p := d.Take(4); p != nil {
		return int32(binary.BigEndian.Uint32(p))
	}
	return 0
}

func (d *Decoder) Int64() int64 {
	if p := d.Take(8); p != nil {
		return int64(binary.BigEndian.Uint64(p))
	}
	return 0
}

func (d *Decoder) Bool() bool {
	p := d.Take(1)
	return p != nil && p[0] != 0
}

// Buffer reads a byte buffer; nil is the null buffer, which differs from the empty buffer.
func (d *Decoder) Buffer() []byte {
	n := d.Int32()
	if d.Bad || n == -1 {
		return nil
	}
	if n == 0 {
		return []byte{}
	}
	return d.Take(int(n))
}

// str reads a string that must not be null.
func (d *Decoder) Text() string {
	n := d.Int32()
	if n < 0 {
		d.Bad = true
	}
	return d.share(d.Take(int(n)))
}

// path reads a string that may be null. Only some operations refuse a null path.
func (d *Decoder) path() (path string, null bool) {
	b := d.Buffer()
	return d.share(b), b == nil
}

// share makes a string of a path, or finds the known string.
func (d *Decoder) share(b []byte) string {
	if d.Known != nil {
		if s, ok := d.Known.Intern(b); ok {
			return s
		}
	}
	return d.text(b)
}

func (d *Decoder) text(b []byte) string {
	if d.Exact {
		return string(b)
	}
	return JavaString(b)
}

// JavaString returns b as a Java server reads it and sends it back: bytes that are not
// UTF-8 become U+FFFD, and a rune beyond 16 bits becomes two surrogates of three bytes
// each. No znode can have such a name, but a client may ask for it.
func JavaString(b []byte) string {
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

// nullableStr reads a string for which null and empty are the same. It does not allocate
// the strings that nearly every ACL has.
func (d *Decoder) nullableStr() string {
	switch b := d.Buffer(); string(b) {
	case "world":
		return "world"
	case "anyone":
		return "anyone"
	default:
		return d.text(b)
	}
}

// count reads the length of a vector whose items take at least size bytes each.
// A count that exceeds the rest of the frame is refused before anything is allocated.
func (d *Decoder) count(size int) int {
	n := int(d.Int32())
	if n < 0 {
		return 0
	}
	if n > len(d.Rest)/size {
		d.Bad = true
		return 0
	}
	return n
}

// strs reads a list that must not be null.
func (d *Decoder) strs() []string {
	if len(d.Rest) >= 4 && binary.BigEndian.Uint32(d.Rest) == math.MaxUint32 {
		d.Bad = true
	}
	n := d.count(4)
	if n == 0 {
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, d.Text())
		if d.Bad {
			return nil
		}
	}
	return list
}

func AppendInt32(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }

func AppendInt64(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func AppendString(b []byte, s string) []byte {
	return append(AppendInt32(b, int32(len(s))), s...)
}

// AppendBuffer writes nil as the null buffer.
func AppendBuffer(b, data []byte) []byte {
	if data == nil {
		return AppendInt32(b, -1)
	}
	return append(AppendInt32(b, int32(len(data))), data...)
}
