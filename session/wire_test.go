package session

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"
)

// strangeWire is a connection of a session without a Manager that runs, on
// which input arrives.
func strangeWire(input []byte) *wire {
	m := &Manager{
		cfg: config{timeout: time.Second, log: zap.NewNop(), maxRequest: defaultMaxRequest, maxAnswer: defaultMaxAnswer}, servers: newServers([]string{"127.0.0.1:1"}),
		change: make(chan struct{}), listeners: make(map[chan State]func() bool), hopeless: make(chan struct{}), clock: newClock(),
	}
	s := newSession(m)
	s.link.ctx, s.link.cancel = context.WithCancel(context.Background())
	m.session = s
	near, far := net.Pipe()
	far.Close()
	w := newWire(s, near, near, 1, "127.0.0.1:1")
	w.in.Reset(bytes.NewReader(input))
	w.hello = true
	return w
}

func framed(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func handshake(timeout int32, id int64) []byte {
	b := appendInt(appendInt(nil, 0), timeout)
	return framed(appendBool(appendBuffer(appendLong(b, id), make([]byte, 16)), false))
}

func answer(xid int32, zxid int64, code int32, body ...byte) []byte {
	return framed(append(appendInt(appendLong(appendInt(nil, xid), zxid), code), body...))
}

func concat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// Whatever a server sends, the connection ends with an error or at the end of the input, and every request is settled.
func FuzzAnswers(f *testing.F) {
	hello := handshake(10000, 7)
	for _, seed := range [][]byte{
		nil, {0}, {0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}, {0x7f, 0xff, 0xff, 0xff, 1}, framed([]byte("garbage")),
		hello, handshake(0, 7), handshake(-1, 7), handshake(10000, 0), hello[:20],
		concat(hello, answer(-1000, 1, 0)), concat(hello, answer(-1001, 1, 0, 0, 0, 0, 1)), concat(hello, answer(-1002, 1, 0, bytes.Repeat([]byte{0xff}, 99)...)),
		concat(hello, answer(-1001, 1, 0, concat(appendStrings(nil, []string{"b", "", "a"}), make([]byte, 68))...)), concat(hello, answer(-1001, 1, 0, 0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 9, 'a')),
		concat(hello, answer(-77777, 1, 0)), concat(hello, answer(-1, -1, 0)),
		concat(hello, answer(-1, -1, 0, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 2, '/', 'a')),
		concat(hello, answer(-2, 0, 0), answer(-4, 0, -115)), concat(hello, answer(5, 3, 0), answer(0, 0, 0)),
		concat(hello, framed([]byte{1, 2, 3})), concat(hello, answer(-1000, 1, -112)), concat(hello, answer(-1000, 1, -118)),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		w := strangeWire(input)
		s := w.s
		s.link.ctx, s.link.cancel = t.Context(), func() {}
		w.shaken = len(input) > 0 && input[0] == 'x'
		if w.shaken {
			w.in.Reset(bytes.NewReader(input[1:]))
			s.greet(w)
		}
		var calls []*call
		for _, op := range []int32{opGetData, opGetChildren2, opMulti, opCreate, opExists, opMultiRead} {
			c := &call{op: op, done: make(chan struct{})}
			w.send(c, nil)
			calls = append(calls, c)
		}
		if _, err := io.Copy(io.Discard, w); err == nil && !w.isClosed() {
			t.Error("the input is at its end and the connection is not")
		}
		for _, c := range calls {
			<-c.done
			s.createdPath(c)
			s.multiAnswer(c, 3)
			s.multiReadAnswer(c, []Read{ReadData("/a"), ReadChildren("/b")})
			d, lazy := decoder{b: c.body}, decoder{b: c.body}
			names, stat := d.strings(), d.stat()
			found := slices.AppendSeq([]string{}, lazy.list())
			if again := lazy.stat(); lazy.bad != d.bad || !d.bad && (*again != *stat || !slices.Equal(found, names)) {
				t.Errorf("a list is %q (%v) in one way and %q (%v) in the other", names, d.bad, found, lazy.bad)
			}
			decodedGet(c)
		}
		s.lose(ErrClosed, false)
		s.wg.Wait()
	})
}

func decodedGet(c *call) ([]byte, *zk.Stat) {
	d := decoder{b: c.body}
	return d.buffer(), d.stat()
}

// A length in an answer costs no memory before its bytes arrive.
func TestALengthAloneCostsNoMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		_, err := readAnswer(bytes.NewReader(binary.BigEndian.AppendUint32(nil, defaultMaxAnswer)), defaultMaxAnswer)
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("error %v, want the end of the input", err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / 100; n > 4<<20 {
		t.Errorf("%d bytes for a frame of which nothing came", n)
	}
	for _, n := range []uint32{defaultMaxAnswer + 1, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		if _, err := readAnswer(bytes.NewReader(binary.BigEndian.AppendUint32(nil, n)), defaultMaxAnswer); !errors.Is(err, errMalformed) {
			t.Errorf("a frame of %d bytes: error %v, want it refused", n, err)
		}
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), 200<<10)
	got, err := readAnswer(bytes.NewReader(framed(big)), defaultMaxAnswer)
	if err != nil || !bytes.Equal(got[4:], big) {
		t.Errorf("a frame of %d bytes came as %d, error %v", len(big), len(got)-4, err)
	}
}

// The numbers of requests wrap around to the first one, and requests are matched across the wrap.
func TestXidsWrapAround(t *testing.T) {
	w := strangeWire(nil)
	w.lastXid = -1<<31 + 1
	for _, xid := range []int32{-1 << 31, firstXid, firstXid - 1} {
		c := &call{op: opSync, done: make(chan struct{})}
		w.send(c, nil)
		if got, skipped := w.take(xid); got != c || skipped {
			t.Errorf("no request %d", xid)
		}
	}
	w.end(io.EOF)
}
