package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
)

const maxAnswer = 1 << 28

// A fakeHandler is a session that uses every connection.
type fakeHandler struct {
	connected *ConnectResponse
	events    int
	done      []*Call
	ended     error
	hold      chan struct{} // if not nil, Ended returns when it is closed
}

func (h *fakeHandler) Connected(r *ConnectResponse) error    { h.connected = r; return nil }
func (h *fakeHandler) Event([]byte) error                    { h.events++; return nil }
func (h *fakeHandler) Header(int64, int32, bool) error       { return nil }
func (h *fakeHandler) Authenticated(int32) error             { return nil }
func (h *fakeHandler) Done(c *Call)                          { h.done = append(h.done, c) }
func (h *fakeHandler) TooLarge(int, int) error               { return io.ErrShortBuffer }
func (h *fakeHandler) TooSlow(int, int, time.Duration) error { return io.ErrNoProgress }
func (h *fakeHandler) Silent(time.Duration, int)             {}
func (h *fakeHandler) Ended(why error) {
	if h.ended = why; h.hold != nil {
		<-h.hold
	}
}

// A sink accepts everything that is written.
type sink struct{ net.Conn }

func (sink) Write(p []byte) (int, error) { return len(p), nil }

// testConn is a connection on which input arrives.
func testConn(t *testing.T, input []byte) (*Conn, *fakeHandler) {
	t.Helper()
	near, far := net.Pipe()
	far.Close()
	near = sink{near}
	h := &fakeHandler{}
	w := New(Config{
		Conn: near, Raw: near, Number: 1, Server: "127.0.0.1:1", MaxAnswer: maxAnswer, Handler: h,
		Hello: ConnectRequest{Zxid: 42, Timeout: 5 * time.Second, Session: 7, Password: make([]byte, 16)},
	})
	w.stream.in.Reset(bytes.NewReader(input))
	t.Cleanup(func() { w.End(io.EOF) })
	return w, h
}

func framed(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func handshake(timeout int32, id int64, readOnly bool) []byte {
	return framed(Encoder(nil).Int(0).Int(timeout).Long(id).Buffer(make([]byte, 16)).Bool(readOnly))
}

func answer(xid int32, zxid int64, code int32, body ...byte) []byte {
	return framed(append(Encoder(nil).Int(xid).Long(zxid).Int(code), body...))
}

func concat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// The numbers of requests wrap around to the first one, and requests are matched across the wrap.
func TestXidsWrapAround(t *testing.T) {
	w, _ := testConn(t, nil)
	w.pending.lastXid = -1<<31 + 1
	for _, xid := range []int32{-1 << 31, firstXid, firstXid - 1} {
		c := w.Send(&Request{Op: OpSync})
		if got, skipped := w.pending.take(xid); got != c || skipped {
			t.Errorf("no request %d", xid)
		}
	}
}

// The goroutine that connects anew learns the end of a connection after the handler, also when another goroutine ends
// the connection. To see this test fail, let Run return without waiting for ended.
func TestReaderLearnsTheEndLast(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		w, h := testConn(t, nil)
		h.hold = make(chan struct{})
		go w.End(net.ErrClosed)
		synctest.Wait()
		over := make(chan struct{})
		go func() {
			defer close(over)
			w.Run()
		}()
		synctest.Wait()
		select {
		case <-over:
			t.Error("Run has returned, and the handler does not know the end yet")
		default:
		}
		close(h.hold)
		synctest.Wait()
		select {
		case <-over:
		default:
			t.Error("Run has not returned")
		}
	})
}

// The ConnectRequest names the newest zxid that the session has seen, and the answer is read with all its fields.
func TestHandshake(t *testing.T) {
	w, h := testConn(t, handshake(4000, 7, true))
	d := Decoder{B: w.cfg.Hello.frame()}
	d.take(8)
	if zxid, timeout, id := d.Long(), d.Int(), d.Long(); zxid != 42 || timeout != 5000 || id != 7 {
		t.Errorf("the request has zxid %d, timeout %d and session %d", zxid, timeout, id)
	}
	w.Run()
	if r := h.connected; r.Timeout != 4*time.Second || r.Session != 7 || !r.ReadOnly || r.Asked != 7 || len(r.Password) != 16 {
		t.Errorf("the answer is %+v", r)
	}
}

// An answer reaches its request, and an event the handler. Every other answer ends the
// connection, and all requests with it.
func TestAnswersAreMatched(t *testing.T) {
	hello := handshake(4000, 7, false)
	for name, c := range map[string]struct {
		input []byte
		want  error
		codes []int32 // of the two requests; 1 if the connection was lost
	}{
		"in order":       {concat(answer(-1000, 1, 0), answer(-1001, 2, -101)), io.EOF, []int32{0, -101}},
		"an event":       {answer(-1, -1, 0), io.EOF, []int32{1, 1}},
		"one is missing": {answer(-1001, 1, 0), errSkipped, []int32{1, 0}},
		"not known":      {answer(-1001, 1, CodeUnimplemented), io.EOF, []int32{1, CodeUnimplemented}},
		"never asked":    {answer(-1002, 1, 0), ErrMalformed, []int32{1, 1}},
		"another number": {answer(10, 1, 0), errUnsolicited, []int32{1, 1}},
		"no credentials": {answer(-4, 1, 0), errUnsolicited, []int32{1, 1}},
	} {
		w, h := testConn(t, concat(hello, c.input))
		calls := []*Call{w.Send(&Request{Op: OpGetData}), w.Send(&Request{Op: OpGetData})}
		w.Run()
		if !errors.Is(h.ended, c.want) {
			t.Errorf("%s: error %v, want %v", name, h.ended, c.want)
		}
		for i, call := range calls {
			<-call.Done()
			if lost := c.codes[i] == 1; lost != (call.Err == ErrConnectionLost) || !lost && call.Code != c.codes[i] {
				t.Errorf("%s: request %d has the code %d and the error %v", name, i, call.Code, call.Err)
			}
		}
		if len(h.done) != 2 || name == "an event" && h.events != 1 {
			t.Errorf("%s: %d requests are over, %d events", name, len(h.done), h.events)
		}
	}
}

// An answer that arrives although the answer to setWatches was left out ends the connection and does not reach its
// request, because events may be missing ahead of it.
func TestAnAnswerBehindALostSetWatches(t *testing.T) {
	for name, c := range map[string]struct {
		input []byte
		want  error
		codes []int32 // of setWatches and the read; 1 if the connection was lost
	}{
		"in order":  {concat(answer(-1000, 1, 0), answer(-1001, 1, 0)), io.EOF, []int32{0, 0}},
		"left out":  {answer(-1001, 1, 0), errSkipped, []int32{1, 1}},
		"not known": {concat(answer(-1001, 1, CodeUnimplemented), answer(-1000, 1, 0)), io.EOF, []int32{0, CodeUnimplemented}},
	} {
		w, h := testConn(t, concat(handshake(4000, 7, false), c.input))
		calls := []*Call{w.Send(&Request{Op: OpSetWatches}), w.Send(&Request{Op: OpGetData})}
		if w.Run(); !errors.Is(h.ended, c.want) {
			t.Errorf("%s: error %v, want %v", name, h.ended, c.want)
		}
		for i, call := range calls {
			<-call.Done()
			if lost := c.codes[i] == 1; lost != (call.Err == ErrConnectionLost) || !lost && call.Code != c.codes[i] {
				t.Errorf("%s: request %d has the code %d and the error %v", name, i, call.Code, call.Err)
			}
		}
	}
}

// A request on a connection that is over is not sent, and the caller learns so at once.
func TestSendAfterTheEnd(t *testing.T) {
	w, _ := testConn(t, nil)
	w.End(io.EOF)
	if c := w.Send(&Request{Op: OpSync}); c.Err != ErrUnsent {
		t.Errorf("error %v, want %v", c.Err, ErrUnsent)
	}
	called := false
	w.Send(&Request{Op: OpSync, Then: func(c *Call) { called = c.Err == ErrUnsent }})
	if !called {
		t.Error("the function was not called")
	}
}

// A silence is reported again and again: at distances that grow to five minutes, for as long as it lasts.
func TestReportsOfALongSilence(t *testing.T) {
	var s silence
	s.start(func() {})
	defer s.stop()
	for lasted := firstReport; lasted < time.Hour; {
		if !s.due(lasted) {
			t.Fatalf("a silence of %v is not reported", lasted)
		}
		next := s.pause
		if next <= lasted || next > lasted+maxReport {
			t.Fatalf("after a report at %v the next one is at %v", lasted, next)
		}
		lasted = next
	}
}
