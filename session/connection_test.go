package session

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// An inputConn is a connection on which input arrives, and that accepts everything that is written.
type inputConn struct {
	net.Conn
	input io.Reader
}

func (c inputConn) Read(p []byte) (int, error)  { return c.input.Read(p) }
func (c inputConn) Write(p []byte) (int, error) { return len(p), nil }

// strangeConnection is a connection on which input arrives, of a session whose Manager does not run.
func strangeConnection(input []byte) (*Session, *wire.Conn) {
	cfg := config{timeout: time.Second, log: zap.NewNop(), maxRequest: defaultMaxRequest, maxAnswer: defaultMaxAnswer}
	m := newManager(cfg, "", []string{"127.0.0.1:1"})
	s := newSession(m.shared, func(State) {})
	s.link.ctx, s.link.cancel = context.WithCancel(context.Background())
	m.session = s
	near, far := net.Pipe()
	far.Close()
	conn := inputConn{near, bytes.NewReader(input)}
	w := newConnection(s.link, nil, wire.Config{Conn: conn, Raw: conn, Number: 1, Server: "127.0.0.1:1"})
	return s, w
}

func framed(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func handshake(timeout int32, id int64) []byte {
	return framed(wire.Encoder(nil).Int(0).Int(timeout).Long(id).Buffer(make([]byte, 16)).Bool(false))
}

func answer(xid int32, zxid int64, code int32, body ...byte) []byte {
	return framed(append(wire.Encoder(nil).Int(xid).Long(zxid).Int(code), body...))
}

func concat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// For any input from a server, the connection ends with an error or at the end of the input, and every request is
// settled.
func FuzzAnswers(f *testing.F) {
	hello := handshake(10000, 7)
	for _, seed := range [][]byte{
		nil, {0}, {0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}, {0x7f, 0xff, 0xff, 0xff, 1}, framed([]byte("garbage")),
		hello, handshake(0, 7), handshake(-1, 7), handshake(10000, 0), hello[:20],
		concat(hello, answer(-1000, 1, 0)), concat(hello, answer(-1001, 1, 0, 0, 0, 0, 1)), concat(hello, answer(-1002, 1, 0, bytes.Repeat([]byte{0xff}, 99)...)),
		concat(hello, answer(-1001, 1, 0, concat(wire.Encoder(nil).Strings([]string{"b", "", "a"}), make([]byte, 68))...)), concat(hello, answer(-1001, 1, 0, 0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 9, 'a')),
		concat(hello, answer(-77777, 1, 0)), concat(hello, answer(-1, -1, 0)),
		concat(hello, answer(-1, -1, 0, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 2, '/', 'a')),
		concat(hello, answer(-2, 0, 0), answer(-4, 0, -115)), concat(hello, answer(5, 3, 0), answer(0, 0, 0)),
		concat(hello, framed([]byte{1, 2, 3})), concat(hello, answer(-1000, 1, -112)), concat(hello, answer(-1000, 1, -118)),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) > 0 && input[0] == 'x' {
			input = concat(hello, input[1:])
		}
		s, w := strangeConnection(input)
		s.link.ctx, s.link.cancel = t.Context(), func() {}
		var calls []*wire.Call
		for _, op := range []int32{wire.OpGetData, wire.OpGetChildren2, wire.OpMulti, wire.OpCreate, wire.OpExists, wire.OpMultiRead} {
			calls = append(calls, w.Send(&wire.Request{Op: op}))
		}
		if w.Run(); !w.Closed() {
			t.Error("the input is at its end and the connection is not")
		}
		for _, c := range calls {
			<-c.Done()
			s.m.createdPath(c, nil)
			s.m.multiAnswer(c, nil, 3)
			s.m.multiReadAnswer(c, []Read{ReadData("/a"), ReadChildren("/b")})
			d, lazy := wire.Decoder{B: c.Body}, wire.Decoder{B: c.Body}
			names, stat := d.Strings(), d.Stat()
			found := slices.AppendSeq([]string{}, lazy.List())
			if again := lazy.Stat(); lazy.Bad != d.Bad || !d.Bad && (*again != *stat || !slices.Equal(found, names)) {
				t.Errorf("a list is %q (%v) in one way and %q (%v) in the other", names, d.Bad, found, lazy.Bad)
			}
			get := wire.Decoder{B: c.Body}
			get.Buffer()
			get.Stat()
		}
		s.lose(ErrClosed, false)
		s.wg.Wait()
	})
}
