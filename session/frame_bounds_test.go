package session_test

import (
	"context"
	"encoding/binary"
	"math"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A read ends if the end of the connection cuts its answer off four times. To see this test fail, remove the call of
// BlameStall in stream.Read.
func TestAnAnswerThatIsCutEndsItsRead(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		h := &hostileServer{answer: func(p *hostilePeer, xid, op int32, body []byte) bool {
			if !aboutBig(op, body) {
				return false
			}
			p.raw(data(xid, 1<<20)[:100_000])
			p.hangUp()
			return true
		}}
		s := current(t, connectTo(t, h))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, _, err := s.Get(ctx, "/big")
		mustBe(t, err, session.ErrAnswerTooSlow)
		if n, _ := h.count(); n > 5 {
			t.Errorf("%d connections, want one for each of four attempts, and the present one", n)
		}
	})
}

// A session timeout of weeks does not make a read wait for hours for an answer that trickles. To see this test fail,
// make keeper.patience add timeout to began.
func TestATrickleWithAHugeTimeout(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		h := &hostileServer{
			grant: func(int64, int32) (int64, int32) { return 7, math.MaxInt32 },
			answer: func(p *hostilePeer, xid, op int32, body []byte) bool {
				if !aboutBig(op, body) {
					return false
				}
				p.slowly(data(xid, 10<<20), 20)
				return true
			}}
		m := connectTo(t, h)
		s := current(t, m)
		read := make(chan error, 1)
		go func() { _, _, err := s.Get(t.Context(), "/big"); read <- err }()
		time.Sleep(time.Hour)
		select {
		case err := <-read:
			mustBe(t, err, session.ErrAnswerTooSlow)
		default:
			t.Errorf("the read is pending after an hour, at 20 bytes/s")
		}
		within(t, 3*time.Minute, "Close", func() { m.Close() })
	})
}

// A large frame without a request ends its connection at once, regardless of its speed. To see this test fail, remove
// the comparison with maxUnasked.
func TestALargeFrameThatNobodyAskedFor(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		var once atomic.Bool
		h := &hostileServer{}
		h.answer = func(p *hostilePeer, xid, op int32, body []byte) bool {
			if aboutBig(op, body) && !once.Swap(true) {
				p.slowly(framed(ints(-1), longs(-1), make([]byte, 200<<20)), 20<<10)
			}
			return false
		}
		s := current(t, connectTo(t, h))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		_, _, err := s.Get(ctx, "/big")
		if took := time.Since(start); err != nil || took > time.Minute {
			t.Errorf("a read of 3 bytes took %v: %v", took, err)
		}
	})
}

// A large answer to the handshake costs no memory. To see this test fail, remove the comparison with maxHandshake.
func TestAHandshakeIsSmall(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		mega := make([]byte, 1<<20)
		var dials atomic.Int32
		// This server sends a password of 64 MB.
		dial := func(context.Context, string, string) (net.Conn, error) {
			dials.Add(1)
			near, far := net.Pipe()
			go func() {
				defer far.Close()
				readRequest(far)
				head := framed(ints(0, 10000), longs(7), ints(64<<20))
				binary.BigEndian.PutUint32(head, 21+(64<<20))
				far.Write(head)
				for range 64 {
					far.Write(mega)
				}
				far.Write([]byte{0})
				readRequest(far)
			}()
			return near, nil
		}
		var a, b runtime.MemStats
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		runtime.ReadMemStats(&a)
		session.Connect(ctx, "127.0.0.1:2181", session.WithDialer(dial))
		time.Sleep(2 * time.Second)
		runtime.ReadMemStats(&b)
		if mb := (b.TotalAlloc - a.TotalAlloc) >> 20; mb > 1 {
			t.Errorf("%d MB were allocated for %d handshakes", mb, dials.Load())
		}
	})
}

// WithMaxAnswer does not apply to events. To see this test fail, make stream.readFrame compare the size of events
// with the limit, too.
func TestAnEventAboveMaxAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three, session.WithMaxAnswer(1024)))
		path := "/" + strings.Repeat("x", 1100)
		srv.Create(path, nil)
		_, _, w, err := s.WatchData(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		conn := s.Connection()
		srv.Set(path, []byte("y"))
		time.Sleep(time.Minute)
		select {
		case <-w.Events():
		default:
			t.Errorf("the event did not come in a minute; connection %d, now %d", conn, s.Connection())
		}
	})
}
