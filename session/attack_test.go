package session_test

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

var attackTime = flag.Duration("attack", 100*time.Millisecond, "how long each attack of TestAttacks lasts; the table of docs/testing.md has 3s")

// An attack is the behaviour of a hostile server towards a client, in real time.
type attack struct {
	name   string
	grant  func(asked int64, timeout int32) (int64, int32)
	answer func(p *hostilePeer, xid, op int32, body []byte) bool
	down   bool // no dial succeeds
	hold   bool // the client holds a lease
	once   bool // the client makes its call once
	use    func(context.Context, *session.Session) error
}

func readBig(ctx context.Context, s *session.Session) error {
	_, _, err := s.Get(ctx, "/big")
	return err
}

var attacks = []attack{
	{name: "an answer of 300 MiB", answer: func(p *hostilePeer, xid, op int32, body []byte) bool {
		if aboutBig(op, body) {
			p.raw(append(binary.BigEndian.AppendUint32(nil, 300<<20), append(ints(xid), make([]byte, 100)...)...))
		}
		return aboutBig(op, body)
	}, use: readBig},
	{name: "22 MB at 8 MB/s for a holder, T = 3 s", hold: true, answer: func(p *hostilePeer, xid, op int32, body []byte) bool {
		if aboutBig(op, body) {
			p.slowly(data(xid, 22<<20), 8<<20)
		}
		return aboutBig(op, body)
	}, use: readBig},
	{name: "grants 1 ms", grant: func(asked int64, _ int32) (int64, int32) { return 1 + asked, 1 }},
	{name: "expires each session", grant: expired, answer: hangUpAt(opGet), use: readBig},
	{name: "swaps the ids of sessions", grant: func(asked int64, timeout int32) (int64, int32) {
		return asked + 1, timeout
	}, answer: hangUpAt(opGet), use: readBig},
	{name: "is down", down: true},
	{name: "flood of answers", answer: floodOf(framed(ints(4711), longs(1), ints(0)))},
	{name: "flood of events", answer: floodOf(framed(ints(-1), longs(-1), ints(0, 3, 3, 2), []byte("/x")))},
	{name: "a list of 64 MiB", once: true, answer: func(p *hostilePeer, xid, op int32, _ []byte) bool {
		if op == opChildren {
			b := append(framed(), bigList()...)
			binary.BigEndian.PutUint32(b, uint32(len(b)-4))
			copy(b[4:], ints(xid))
			p.raw(b)
		}
		return op == opChildren
	}, use: func(ctx context.Context, s *session.Session) error {
		names, _, err := s.Children(ctx, "/big")
		runtime.KeepAlive(names)
		return err
	}},
}

// bigList builds the answer to a request for children, with 64 MiB of names.
var bigList = sync.OnceValue(func() []byte {
	n := int32(1 << 20 / 12) // for a short run
	if *attackTime >= time.Second {
		n *= 64
	}
	b := append(append(ints(0), longs(1)...), ints(0, n)...)
	for i := range n {
		b = fmt.Appendf(append(b, ints(8)...), "n%07d", i)
	}
	return append(b, make([]byte, 68)...)
})

// floodOf answers a request and then sends a frame again and again.
func floodOf(frame []byte) func(*hostilePeer, int32, int32, []byte) bool {
	var many []byte
	for range 1000 {
		many = append(many, frame...)
	}
	return func(p *hostilePeer, xid, op int32, _ []byte) bool {
		p.plain(xid, op)
		go func() {
			for {
				if _, err := p.conn.Write(many); err != nil {
					return
				}
			}
		}()
		return true
	}
}

// A client of a healthy server in the same process is served while another client is attacked. go test -v ./session
// -run '^TestAttacks$' -attack 3s prints the cost of each attack: hostile server and client together.
func TestAttacks(t *testing.T) {
	if *attackTime < time.Second {
		t.Parallel()
	}
	srv := zksynctest.Start(t)
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) { a.run(t, srv) })
	}
}

func (a *attack) run(t *testing.T, srv *zksynctest.Server) {
	if *attackTime < time.Second {
		t.Parallel() // a longer run prints the cost of each attack, which no other attack may add to
	}
	var lines atomic.Int64
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(countWriter{&lines}), zap.DebugLevel))
	other := current(t, connect(t, srv, three))
	h := &hostileServer{}
	var down atomic.Bool
	m, err := session.Connect(t.Context(), "127.0.0.1:2181", session.WithLogger(log), session.WithTimeout(3*time.Second),
		session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			if down.Load() {
				h.note(&h.dials)
				return nil, syscall.ECONNREFUSED
			}
			return h.dial(ctx, network, address)
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if a.hold {
		hold(t, current(t, m))
	}
	bigList() // not part of the cost
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	base, peak, slowest := mem.HeapAlloc, uint64(0), time.Duration(0)
	before, _ := h.count()
	h.mu.Lock()
	h.grant, h.answer = a.grant, a.answer
	h.mu.Unlock()
	down.Store(a.down)
	if a.use == nil {
		h.hangUpAll()
	}
	ctx, stop := context.WithTimeout(t.Context(), *attackTime)
	defer stop()
	used := make(chan error, 1)
	ended := time.Duration(0)
	cpu, began := processorTime(t), time.Now()
	go func() {
		if a.use == nil {
			used <- nil
			return
		}
		var err error
		for ctx.Err() == nil {
			if err = m.Do(ctx, func(ctx context.Context, s *session.Session) error { return a.use(ctx, s) }); ended == 0 {
				ended = time.Since(began)
			}
			if a.once {
				break
			}
			<-time.After(10 * time.Millisecond)
		}
		used <- err
	}()
	for ctx.Err() == nil {
		asked := time.Now()
		if _, _, err := other.Get(t.Context(), "/"); err != nil {
			t.Errorf("a client of a healthy server: %v", err)
		}
		slowest = max(slowest, time.Since(asked))
		runtime.ReadMemStats(&mem)
		peak = max(peak, mem.HeapAlloc)
		<-time.After(5 * time.Millisecond)
	}
	took := time.Since(began)
	cpu = processorTime(t) - cpu
	<-used
	dials, _ := h.count()
	t.Logf("| %s | %d | %d | %d MB | %.0f %% | %v | %v |", a.name, dials-before, lines.Load(), (peak-min(peak, base))>>20,
		100*cpu.Seconds()/took.Seconds(), slowest.Round(100*time.Microsecond), ended.Round(time.Millisecond))
}

// processorTime returns the processor time that this process has used.
func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
