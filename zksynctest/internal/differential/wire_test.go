package differential

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// record is the encoded record of a request.
type record []byte

func (b record) i32(v int32) record { return binary.BigEndian.AppendUint32(b, uint32(v)) }
func (b record) i64(v int64) record { return binary.BigEndian.AppendUint64(b, uint64(v)) }

func (b record) flag(v bool) record {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// quotaRoot is the parent of quotas: the quota of a path is at quotaRoot followed by that path.
const quotaRoot = "/zookeeper/quota"

// nullText denotes a null string or buffer.
const nullText = "null"

func (b record) str(s string) record {
	if s == nullText {
		return b.i32(-1)
	}
	return append(b.i32(int32(len(s))), s...)
}

func (b record) strs(list []string) record {
	b = b.i32(int32(len(list)))
	for _, s := range list {
		b = b.str(s)
	}
	return b
}

// reading decodes a record into text. A missing field reads as zero, and the end of the text
// reports a short record.
type reading struct {
	b     []byte
	short bool
}

func (r *reading) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.short, r.b = true, nil
		return make([]byte, max(0, min(n, 16)))
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reading) i32() int32 { return int32(binary.BigEndian.Uint32(r.take(4))) }
func (r *reading) i64() int64 { return int64(binary.BigEndian.Uint64(r.take(8))) }
func (r *reading) flag() bool { return r.take(1)[0] != 0 }

func (r *reading) buffer() (b []byte, null bool) {
	n := r.i32()
	if n == -1 {
		return nil, true
	}
	return r.take(int(n)), false
}

// text reads a buffer or string and quotes it.
func (r *reading) text() string {
	b, null := r.buffer()
	if null {
		return nullText
	}
	return strconv.Quote(string(b))
}

func (r *reading) texts() []string {
	n := r.i32()
	if n == -1 {
		return []string{nullText}
	}
	var list []string
	for range n {
		if r.short {
			break
		}
		list = append(list, r.text())
	}
	return list
}

// sorted reads a list whose order is unspecified.
func (r *reading) sorted() string {
	list := r.texts()
	slices.Sort(list)
	return fmt.Sprint(list)
}

// end reports a wrong length of the record.
func (r *reading) end() string {
	switch {
	case r.short:
		return " TOO SHORT"
	case len(r.b) > 0:
		return fmt.Sprintf(" TOO LONG by %x", r.b)
	}
	return ""
}

// names translates between values of one run, such as zxids, and names that are the same in every
// run.
type names struct {
	root     string // the path that ~ stands for
	base     int64  // the zxid at which the run began
	sessions []*session
}

// session is a session that a server has granted to a run.
type session struct {
	id       int64
	password string
}

// path returns the path of a znode for a path of a script.
func (n *names) path(s string) string {
	if inner, ok := strings.CutPrefix(s, quotaRoot); ok {
		return quotaRoot + n.path(inner)
	}
	if s == "~" || strings.HasPrefix(s, "~/") {
		return n.root + s[1:]
	}
	return s
}

func (n *names) paths(list []string) []string {
	full := make([]string, len(list))
	for i, s := range list {
		full[i] = n.path(s)
	}
	return full
}

// zxid returns a zxid relative to the start of the run.
func (n *names) zxid(z int64) string {
	switch {
	case z <= 0:
		return strconv.FormatInt(z, 10)
	case z <= n.base:
		return "old"
	}
	return "+" + strconv.FormatInt(z-n.base, 10)
}

// toZxid is the inverse of zxid; a number without a sign is absolute.
func (n *names) toZxid(s string) (int64, error) {
	z, err := strconv.ParseInt(s, 0, 64)
	if strings.HasPrefix(s, "+") {
		z += n.base
	}
	return z, err
}

func (n *names) sessionID(id int64) string {
	for i, s := range n.sessions {
		if s.id == id {
			return "s" + strconv.Itoa(i)
		}
	}
	if id == 0 {
		return "none"
	}
	return "unknown"
}

// stat reads a Stat, without its times.
func (n *names) stat(r *reading) string {
	czxid, mzxid := n.zxid(r.i64()), n.zxid(r.i64())
	r.i64()
	r.i64()
	version, cversion, aversion := r.i32(), r.i32(), r.i32()
	owner := n.sessionID(r.i64())
	length, children := r.i32(), r.i32()
	return fmt.Sprintf("{czxid %s mzxid %s pzxid %s version %d cversion %d aversion %d owner %s length %d children %d}",
		czxid, mzxid, n.zxid(r.i64()), version, cversion, aversion, owner, length, children)
}

// passwordOf returns the password that the server gave to the client when the session began, or ""
// if the password did not have 16 bytes. A real server derives the password from the id; the
// embedded server does not.
func (r *run) passwordOf(id int64) string {
	for _, s := range r.sessions {
		if s.id == id && len(s.password) == 16 {
			return s.password
		}
	}
	return ""
}
