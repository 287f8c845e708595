package wire

import (
	"encoding/binary"

	"github.com/go-zookeeper/zk"
)

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
