package session_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

var (
	damagedAnswers = flag.Int("damaged", 5000, "how many damaged answers TestAStormOfDamagedAnswers sends")
	stormSeed      = flag.Uint64("storm-seed", 1, "the seed of the first bubble of TestAStormOfDamagedAnswers")
)

// stormRound is the number of damaged answers in one bubble, which must not last for
// more than 90 s.
const stormRound = 5000

// A damager is a server that damages its answers in every way in which bytes can be damaged.
type damager struct {
	hostileServer
	armed atomic.Bool
	count atomic.Int64

	mu  sync.Mutex
	rnd *rand.Rand
}

func (d *damager) intN(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rnd.IntN(n)
}

// respond answers a request, and damages every fourth answer.
func (d *damager) respond(p *hostilePeer, xid, op int32, _ []byte) bool {
	if !d.armed.Load() || d.intN(4) != 0 {
		return false
	}
	d.count.Add(1)
	good := p.answerTo(xid, op)
	switch d.intN(13) {
	case 0: // flipped bits
		for range 1 + d.intN(4) {
			good[4+d.intN(len(good)-4)] ^= 1 << d.intN(8)
		}
		p.raw(good)
	case 1: // cut, with the right length
		p.frame(good[4 : 4+d.intN(len(good)-4)])
	case 2: // cut, with the old length: the next answer completes it
		p.raw(good[:4+d.intN(len(good)-4)])
	case 3: // another length
		copy(good, ints(int32(d.intN(1<<31-1))>>d.intN(31)))
		p.raw(good)
	case 4: // twice
		p.raw(good)
		p.raw(good)
	case 5: // lost
	case 6: // for another request
		copy(good[4:], ints(xid+int32(d.intN(9))-4))
		p.raw(good)
	case 7: // a refusal, of any kind
		p.reply(xid, -int32(d.intN(130)))
	case 8: // noise
		noise := make([]byte, 1+d.intN(200))
		for i := range noise {
			noise[i] = byte(d.intN(256))
		}
		p.raw(noise)
	case 9: // ended in the middle
		p.raw(good[:1+d.intN(len(good)-1)])
		p.hangUp()
	case 10: // a huge count
		at := 4 + d.intN(len(good)-7)
		copy(good[at:], ints(1<<31-1-int32(d.intN(1<<20))))
		p.raw(good)
	case 11: // events of all kinds, for unknown paths and for a watched path
		path := []string{"/", "/a", "/none", ""}[d.intN(4)]
		p.frame(ints(-1), longs(-1), ints(0, int32(d.intN(7)-1), 3, int32(len(path))), []byte(path))
		p.raw(good)
	case 12: // more than the request asked for
		p.frame(good[4:], make([]byte, d.intN(1<<16)))
	}
	return true
}

// grantBadly answers every twentieth handshake with the session of another client, or with an absurd timeout.
func (d *damager) grantBadly(asked int64, timeout int32) (int64, int32) {
	if asked == 0 {
		d.sessions++
		asked = d.sessions
	}
	if !d.armed.Load() || d.intN(20) != 0 {
		return asked, timeout
	}
	d.hostileServer.handshake++
	switch d.intN(4) {
	case 0:
		return 0, 0
	case 1:
		return asked + 1<<30, timeout
	case 2:
		return asked, int32(d.intN(200)) - 100
	}
	return asked, 1<<31 - 1
}

// For any answers of a server, no call panics or hangs, nothing is left when the Manager is closed, memory stays
// bounded, and a Manager on another server is served as before. To see this test fail, make Decoder.take trust its n.
// make storm-client sends 100,000 damaged answers.
func TestAStormOfDamagedAnswers(t *testing.T) {
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var peak atomic.Uint64
	sent := int64(0)
	for seed := *stormSeed; sent < int64(*damagedAnswers); seed++ {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			sent += storm(t, srv, seed, min(stormRound, int64(*damagedAnswers)-sent), &peak)
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&now)
	if grown := int64(now.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("%d MB are left behind", grown>>20)
	}
	// An answer may be 256 MiB long, and only the bytes that arrive take memory.
	if p := peak.Load() - min(peak.Load(), before.HeapAlloc); p > 256<<20 {
		t.Errorf("the heap grew by %d MB", p>>20)
	}
	t.Logf("%d damaged answers; the heap grew by %d MB at most", sent, (peak.Load()-min(peak.Load(), before.HeapAlloc))>>20)
}

func storm(t *testing.T, srv *zksynctest.Server, seed uint64, answers int64, peak *atomic.Uint64) int64 {
	d := &damager{rnd: rand.New(rand.NewPCG(seed, 0))}
	d.answer, d.grant = d.respond, d.grantBadly
	m := connectTo(t, &d.hostileServer)
	other := connect(t, srv, three)
	d.armed.Store(true)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var busy sync.WaitGroup
	for _, use := range stormUses {
		busy.Go(func() {
			for ctx.Err() == nil {
				call, done := context.WithTimeout(ctx, time.Minute)
				began := time.Now()
				if s, err := m.Session(call); err == nil {
					use(call, m, s)
				}
				if took := time.Since(began); took > time.Minute+time.Second {
					t.Errorf("a call has returned %v after its ctx had ended", took-time.Minute)
				}
				done()
				// A call whose answer is not damaged takes no time here.
				select {
				case <-time.After(time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	for d.count.Load() < answers {
		time.Sleep(time.Second)
		within(t, 0, "a read on the healthy server", func() {
			if _, _, err := current(t, other).Get(t.Context(), "/"); err != nil {
				t.Errorf("a client of a healthy server: %v", err)
			}
		})
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		peak.Store(max(peak.Load(), mem.HeapAlloc))
	}
	d.armed.Store(false)
	// A server that answers correctly again is used again.
	// A server may have granted a huge timeout: then a connection whose answer has stopped, or which is silent, ends
	// after two minutes only.
	healed, done := context.WithTimeout(ctx, 5*time.Minute)
	defer done()
	if err := m.Do(healed, func(ctx context.Context, s *session.Session) error { _, _, err := s.Get(ctx, "/"); return err }); err != nil {
		t.Errorf("behind the storm: %v", err)
	}
	stop()
	busy.Wait()
	m.Close()
	return d.count.Load()
}

// stormUses are the calls of a storm. Each call may return any error.
var stormUses = []func(context.Context, *session.Manager, *session.Session){
	func(ctx context.Context, _ *session.Manager, s *session.Session) { s.Get(ctx, "/a") },
	func(ctx context.Context, _ *session.Manager, s *session.Session) { s.GetW(ctx, "/a") },
	func(ctx context.Context, _ *session.Manager, s *session.Session) { s.ExistsW(ctx, "/a") },
	func(ctx context.Context, _ *session.Manager, s *session.Session) { s.ChildrenW(ctx, "/a") },
	func(ctx context.Context, _ *session.Manager, s *session.Session) {
		if names, _, err := s.ChildNames(ctx, "/a"); err == nil {
			for range names {
			}
		}
	},
	func(ctx context.Context, _ *session.Manager, s *session.Session) { s.Create(ctx, "/a", nil, 0) },
	func(ctx context.Context, _ *session.Manager, s *session.Session) { s.Set(ctx, "/a", nil, 3) },
	func(ctx context.Context, _ *session.Manager, s *session.Session) {
		s.Multi(ctx, &zk.CheckVersionRequest{Path: "/a", Version: -1})
	},
	func(ctx context.Context, _ *session.Manager, s *session.Session) {
		s.MultiRead(ctx, session.ReadData("/a"), session.ReadChildren("/b"))
	},
	func(ctx context.Context, _ *session.Manager, s *session.Session) {
		s.CreateProtected(ctx, "/d/x-", nil, zk.FlagEphemeralSequential)
	},
	func(ctx context.Context, _ *session.Manager, s *session.Session) { s.SyncQuorum(ctx, "/") },
	func(ctx context.Context, _ *session.Manager, s *session.Session) {
		l := s.Lease()
		defer l.End()
		if l.Grant(ctx) == nil {
			select {
			case <-s.Done():
			case <-time.After(3 * time.Second):
			}
		}
	},
	func(ctx context.Context, m *session.Manager, _ *session.Session) {
		// Close has no ctx, and takes ten seconds at most.
		ctx, cancel := context.WithTimeout(ctx, 50*time.Second)
		defer cancel()
		if e, err := m.Ephemeral(ctx, "/e", nil); err == nil {
			e.Close()
		}
	},
	func(ctx context.Context, _ *session.Manager, s *session.Session) {
		in := s.NewInbox()
		defer in.Close()
		for i := range 20 {
			in.Data(fmt.Sprintf("/a%d", i%3), i)
			in.Children("/a", i)
		}
		for range 10 {
			batch, err := in.Receive(ctx)
			if err != nil {
				return
			}
			for _, got := range batch {
				if got.Kind == session.InboxAnswer && got.Err == nil {
					got.Data()
					got.Names()
				}
			}
		}
	},
}
