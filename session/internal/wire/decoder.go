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
	if n == -1 {
		return nil
	}
	return d.take(int(n))
}

// String reads a string.
func (d *Decoder) String() string { return string(d.Buffer()) }

// MultiHeader reads the header of a result of a transaction, and reports whether it is
// the end of the results.
func (d *Decoder) MultiHeader() (op int32, end bool) {
	op, end = d.Int(), d.Bool()
	d.Int()
	return op, end
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
			size := int32(binary.BigEndian.Uint32([]byte(rest[:4])))
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
