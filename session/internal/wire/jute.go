package wire

import (
	"encoding/binary"
	"iter"

	"github.com/go-zookeeper/zk"
)

// A Decoder reads a record from B. The first field that does not fit sets Bad, and all
// fields after it are zero.
type Decoder struct {
	B   []byte // the rest of the record
	Bad bool
}

func (d *Decoder) take(n int) []byte {
	if d.Bad || n < 0 || n > len(d.B) {
		d.Bad = true
		return nil
	}
	// With this capacity, an append to a field by a caller does not overwrite the next
	// field.
	p := d.B[:n:n]
	d.B = d.B[n:]
	return p
}

// Int reads four bytes.
func (d *Decoder) Int() int32 {
	if p := d.take(4); p != nil {
		return int32(binary.BigEndian.Uint32(p))
	}
	return 0
}

// Long reads eight bytes.
func (d *Decoder) Long() int64 {
	if p := d.take(8); p != nil {
		return int64(binary.BigEndian.Uint64(p))
	}
	return 0
}

// Bool reads one byte.
func (d *Decoder) Bool() bool {
	p := d.take(1)
	return p != nil && p[0] != 0
}

// Buffer reads bytes with their length in front. The result shares the memory of B.
func (d *Decoder) Buffer() []byte {
	n := d.Int()
	// The length of null, which the server keeps apart from empty data.
	if n == -1 {
		return nil
	}
	return d.take(int(n))
}

// String reads a string.
func (d *Decoder) String() string { return string(d.Buffer()) }

// Results yields the operation of each result of a transaction, or -1 for an error. The
// body of the loop decodes the result itself. The loop ends after the last result, and
// when a field does not fit.
func (d *Decoder) Results() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for {
			op, end := d.Int(), d.Bool()
			d.Int()
			if d.Bad || end || !yield(op) {
				return
			}
		}
	}
}

// Strings reads a list. The names of a list of at least largeList bytes share strings of
// about nameBlock bytes: millions of small strings would take several times the memory
// of the list. A caller that keeps one name keeps its block.
func (d *Decoder) Strings() []string {
	n := int(d.Int())
	// Each element takes at least four bytes, so a wrong count in a broken frame cannot
	// make us allocate more than the frame is long.
	if n <= 0 || n > len(d.B)/4 {
		d.Bad = d.Bad || n > 0
		return []string{}
	}
	list := make([]string, 0, n)
	if len(d.B) < largeList {
		for range n {
			list = append(list, d.String())
		}
		return list
	}
	for len(list) < n && !d.Bad {
		block, names := d.B, 0
		for len(list)+names < n && len(block)-len(d.B) < nameBlock && !d.Bad {
			d.Buffer()
			names++
		}
		if d.Bad {
			break
		}
		for name := range namesIn(string(block[:len(block)-len(d.B)])) {
			list = append(list, name)
		}
	}
	return list
}

// See Strings.
const (
	largeList = 64 << 10
	nameBlock = 4 << 10
)

// namesIn yields the strings of a part of an answer.
func namesIn(all string) iter.Seq[string] {
	return func(yield func(string) bool) {
		rest := all
		for len(rest) > 0 {
			// The caller has decoded this part before, so every length fits.
			size := int32(binary.BigEndian.Uint32([]byte(rest[:4])))
			// A name that is null has the length -1, and no bytes follow.
			end := 4 + max(0, int(size))
			if !yield(rest[4:end]) {
				return
			}
			rest = rest[end:]
		}
	}
}

// List is Strings without a slice, and with one allocation for all names.
func (d *Decoder) List() iter.Seq[string] {
	n := d.Int()
	start := d.B
	// The names are yielded later, when there is no way to report that a length does not
	// fit.
	for range n {
		if d.Buffer(); d.Bad {
			return func(func(string) bool) {}
		}
	}
	return namesIn(string(start[:len(start)-len(d.B)]))
}

// Stat reads a Stat.
func (d *Decoder) Stat() *zk.Stat {
	return &zk.Stat{
		Czxid: d.Long(), Mzxid: d.Long(), Ctime: d.Long(), Mtime: d.Long(),
		Version: d.Int(), Cversion: d.Int(), Aversion: d.Int(),
		EphemeralOwner: d.Long(), DataLength: d.Int(), NumChildren: d.Int(), Pzxid: d.Long(),
	}
}

// An Encoder is a record that is being encoded. Each method returns the record with one
// more field.
type Encoder []byte

// Int appends four bytes.
func (e Encoder) Int(v int32) Encoder { return binary.BigEndian.AppendUint32(e, uint32(v)) }

// Long appends eight bytes.
func (e Encoder) Long(v int64) Encoder { return binary.BigEndian.AppendUint64(e, uint64(v)) }

// Bool appends one byte.
func (e Encoder) Bool(v bool) Encoder {
	if v {
		return append(e, 1)
	}
	return append(e, 0)
}

// String appends a string with its length in front.
func (e Encoder) String(s string) Encoder { return append(e.Int(int32(len(s))), s...) }

// Buffer appends bytes with their length in front. nil and empty data are different.
func (e Encoder) Buffer(data []byte) Encoder {
	if data == nil {
		return e.Int(-1)
	}
	return append(e.Int(int32(len(data))), data...)
}

// Strings appends a list with its length in front.
func (e Encoder) Strings(list []string) Encoder {
	e = e.Int(int32(len(list)))
	for _, s := range list {
		e = e.String(s)
	}
	return e
}

// ACL appends a list of permissions.
func (e Encoder) ACL(acl []zk.ACL) Encoder {
	e = e.Int(int32(len(acl)))
	for _, a := range acl {
		e = e.Int(a.Perms).String(a.Scheme).String(a.ID)
	}
	return e
}

// MultiHeader appends the header of one operation of a transaction.
func (e Encoder) MultiHeader(op int32) Encoder { return e.Int(op).Bool(false).Int(-1) }

// MultiEnd ends a transaction.
func (e Encoder) MultiEnd() Encoder { return e.Int(-1).Bool(true).Int(-1) }

// The sizes in bytes of a header of a request, and of an operation of a transaction.
const (
	HeaderSize      = 8
	MultiHeaderSize = 9
)
