package zkserver_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// rec is a record to be built.
type rec []byte

func (b rec) i32(vs ...int32) rec {
	for _, v := range vs {
		b = binary.BigEndian.AppendUint32(b, uint32(v))
	}
	return b
}

func (b rec) i64(v int64) rec { return binary.BigEndian.AppendUint64(b, uint64(v)) }

func (b rec) flag(v bool) rec {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func (b rec) str(s string) rec { return append(b.i32(int32(len(s))), s...) }

func (b rec) strs(list ...string) rec {
	b = b.i32(int32(len(list)))
	for _, s := range list {
		b = b.str(s)
	}
	return b
}

// acl appends triples of perms, scheme and id.
func (b rec) acl(entries ...any) rec {
	b = b.i32(int32(len(entries) / 3))
	for i := 0; i < len(entries); i += 3 {
		b = b.i32(int32(entries[i].(int))).str(entries[i+1].(string)).str(entries[i+2].(string))
	}
	return b
}

func open() rec { return rec{}.acl(31, "world", "anyone") }

func createRec(path, data string, flags int32) rec {
	return append(rec{}.str(path).str(data), open()...).i32(flags)
}

// reading decodes a record.
type reading struct {
	t testing.TB
	b []byte
}

func (r *reading) take(n int) []byte {
	r.t.Helper()
	if n > len(r.b) {
		r.t.Fatalf("record too short: want %d bytes of % x", n, r.b)
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reading) i32() int32 { r.t.Helper(); return int32(binary.BigEndian.Uint32(r.take(4))) }
func (r *reading) i64() int64 { r.t.Helper(); return int64(binary.BigEndian.Uint64(r.take(8))) }

func (r *reading) str() string {
	r.t.Helper()
	n := r.i32()
	if n < 0 {
		return "<null>"
	}
	return string(r.take(int(n)))
}

func (r *reading) strs() []string {
	list := make([]string, r.i32())
	for i := range list {
		list[i] = r.str()
	}
	return list
}

type stat struct {
	czxid, mzxid, ctime, mtime  int64
	version, cversion, aversion int32
	owner                       int64
	dataLength, children        int32
	pzxid                       int64
}

func (r *reading) stat() stat {
	r.t.Helper()
	return stat{
		r.i64(), r.i64(), r.i64(), r.i64(),
		r.i32(), r.i32(), r.i32(), r.i64(), r.i32(), r.i32(), r.i64(),
	}
}

// reply is one frame from the server.
type reply struct {
	xid  int32
	zxid int64
	code zkserver.Code
	*reading
}

// raw is a client that sends and reads only on request of the test.
type raw struct {
	t        testing.TB
	nc       net.Conn
	xid      int32
	id       int64
	timeout  int32
	password string
	patience time.Duration // for a frame; 0 means a minute
}

func rawOver(t testing.TB, nc net.Conn) *raw {
	t.Cleanup(func() { nc.Close() })
	return &raw{t: t, nc: nc}
}

func rawDial(t testing.TB, s *zkserver.Server) *raw {
	t.Helper()
	nc, err := s.Dial(context.Background(), "tcp", "127.0.0.1:2181")
	if err != nil {
		t.Fatal(err)
	}
	return rawOver(t, nc)
}

// session opens a new session over a new in-memory connection.
func session(t testing.TB, s *zkserver.Server, timeout time.Duration) *raw {
	t.Helper()
	r := rawDial(t, s)
	r.hello(0, timeout, 0, "")
	r.welcome()
	return r
}

// again reconnects to the session of r.
func (r *raw) again(s *zkserver.Server) *raw {
	r.t.Helper()
	n := rawDial(r.t, s)
	n.hello(0, time.Duration(r.timeout)*time.Millisecond, r.id, r.password)
	return n
}

func (r *raw) write(b []byte) {
	r.t.Helper()
	if _, err := r.nc.Write(b); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) frame(body []byte) {
	r.t.Helper()
	r.write(framed(body))
}

func framed(body []byte) []byte { return append(rec{}.i32(int32(len(body))), body...) }

func (r *raw) hello(zxid int64, timeout time.Duration, id int64, password string) {
	r.t.Helper()
	pw := make([]byte, 16)
	copy(pw, password)
	r.frame(rec{}.i32(0).i64(zxid).i32(int32(timeout.Milliseconds())).i64(id).str(string(pw)))
}

// welcome reads a ConnectResponse; an id of 0 is a refusal.
func (r *raw) welcome() *raw {
	r.t.Helper()
	in, err := r.read()
	if err != nil {
		r.t.Fatalf("ConnectResponse: %v", err)
	}
	in.i32()
	r.timeout, r.id, r.password = in.i32(), in.i64(), in.str()
	if len(in.b) != 0 {
		r.t.Fatalf("%d bytes too many in the ConnectResponse", len(in.b))
	}
	return r
}

func (r *raw) read() (*reading, error) {
	_ = r.nc.SetReadDeadline(time.Now().Add(cmp.Or(r.patience, time.Minute)))
	var head [4]byte
	if _, err := io.ReadFull(r.nc, head[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(r.nc, body)
	return &reading{r.t, body}, err
}

func (r *raw) send(op zkserver.OpCode, body []byte) int32 {
	r.t.Helper()
	r.xid++
	r.frame(append(rec{}.i32(r.xid, int32(op)), body...))
	if op == zkserver.OpPing {
		return -2
	}
	return r.xid
}

func (r *raw) recv() reply {
	r.t.Helper()
	in, err := r.read()
	if err != nil {
		r.t.Fatalf("reply: %v", err)
	}
	return reply{in.i32(), in.i64(), zkserver.Code(in.i32()), in}
}

// call sends a request and reads its reply; no event may precede the reply.
func (r *raw) call(op zkserver.OpCode, body []byte) reply {
	r.t.Helper()
	xid := r.send(op, body)
	p := r.recv()
	if p.xid != xid {
		r.t.Fatalf("%v: reply has xid %d, want %d", op, p.xid, xid)
	}
	return p
}

// want sends a request and compares the code of the reply.
func (r *raw) want(code zkserver.Code, op zkserver.OpCode, body []byte) reply {
	r.t.Helper()
	p := r.call(op, body)
	if p.code != code {
		r.t.Fatalf("%v: %v, want %v", op, p.code, code)
	}
	if code != 0 && len(p.b) != 0 {
		r.t.Fatalf("%v: a failed reply has a record: % x", op, p.b)
	}
	return p
}

func (r *raw) create(path string, flags int32) string {
	r.t.Helper()
	return r.want(0, zkserver.OpCreate, createRec(path, "", flags)).str()
}

func (r *raw) stat(path string) stat {
	r.t.Helper()
	return r.want(0, zkserver.OpExists, rec{}.str(path).flag(false)).stat()
}

type event struct {
	kind int32
	path string
}

func (r *raw) event() event {
	r.t.Helper()
	p := r.recv()
	if p.xid != -1 {
		r.t.Fatalf("got the reply to %d, want an event", p.xid)
	}
	kind, state, path := p.i32(), p.i32(), p.str()
	if state != 3 {
		r.t.Fatalf("state %d in an event", state)
	}
	return event{kind, path}
}

// closed requires that the connection ends without further frames.
func (r *raw) closed() {
	r.t.Helper()
	in, err := r.read()
	if err == nil {
		r.t.Fatalf("got a frame % x, want the connection closed", in.b)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		r.t.Fatal("the connection is still open")
	}
}

// silent requires that nothing arrives for d. Use it in bubbles, where the wait takes no real time.
func (r *raw) silent(d time.Duration) {
	r.t.Helper()
	_ = r.nc.SetReadDeadline(time.Now().Add(d))
	var b [1]byte
	if _, err := r.nc.Read(b[:]); !errors.Is(err, os.ErrDeadlineExceeded) {
		r.t.Fatalf("want silence, got %x, %v", b, err)
	}
}
