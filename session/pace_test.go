package session_test

import (
	"context"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// expireEach makes a server that breaks every session's connection once it is in use, and ends the session when the
// client reconnects: with id 0, or another id.
func expireEach(other int64) *hostileServer {
	var last int64
	h := &hostileServer{}
	h.grant = func(asked int64, timeout int32) (int64, int32) {
		if asked == 0 {
			last++
			return last, timeout
		}
		if other == 0 {
			return 0, 0
		}
		return asked + other, timeout
	}
	h.answer = func(p *hostilePeer, xid, op int32, _ []byte) bool {
		if op == opSync || op == opMulti {
			p.plain(xid, op)
		}
		p.hangUp()
		return true
	}
	return h
}

// If a server ends every session when the client reconnects, or gives the client another session then, the client
// requests sessions at a pace that falls to about one a second. To see this test fail, remove the call of sleep in
// Manager.run.
func TestSessionsThatEndYoungComeMoreAndMoreRarely(t *testing.T) {
	for name, other := range map[string]int64{"expired": 0, "swapped": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				h := expireEach(other)
				connectTo(t, h)
				before, _ := h.count()
				time.Sleep(10 * time.Second)
				first, _ := h.count()
				time.Sleep(time.Minute)
				dials, _ := h.count()
				if first-before > 60 || dials-first > 150 || dials-first < 30 {
					t.Errorf("%d connections in the first ten seconds and %d in the next minute, want a few dozen and about two a second", first-before, dials-first)
				}
			})
		})
	}
}

// The session after a long session begins at once, even if an earlier session was short. To see this test fail,
// remove the case of sessionPace.after that sets guilt to zero.
func TestTheSessionAfterOneThatLivedIsImmediate(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, "127.0.0.1:2181")
		for range 3 {
			for range 10 {
				srv.ExpireSession(current(t, m).ID())
				current(t, m)
			}
			time.Sleep(time.Minute)
			s := current(t, m)
			srv.ExpireSession(s.ID())
			within(t, 0, "the next session", func() {
				<-s.Done()
				current(t, m)
			})
		}
	})
}

// If sessions are lost in a storm but have served their callers, the next sessions follow quickly: there is no pause
// for the first seven.
func TestSessionsThatServedComeBackAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		within(t, 0, "seven sessions", func() {
			for range 7 {
				s := current(t, m)
				if _, _, err := s.Get(t.Context(), "/"); err != nil {
					t.Fatal(err)
				}
				srv.ExpireSession(s.ID())
				<-s.Done()
			}
			current(t, m)
		})
	})
}

// Close ends the pause between two sessions.
func TestCloseBetweenTwoSessions(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		m := connectTo(t, expireEach(0))
		time.Sleep(time.Minute)
		within(t, time.Second, "Close", func() { m.Close() })
	})
}

// A session timeout below 100 ms is refused with an error that names it, and does not make the client busy.
func TestATimeoutThatIsTooShort(t *testing.T) {
	for _, granted := range []int32{1, 99} {
		bounds.Bubble(t, func(t *testing.T) {
			h := &hostileServer{grant: func(int64, int32) (int64, int32) { return 7, granted }}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := session.Connect(ctx, "127.0.0.1:2181", session.WithDialer(h.dial))
			mustBe(t, err, session.ErrMisconfigured)
			if err != nil && (!strings.Contains(err.Error(), (time.Duration(granted)*time.Millisecond).String()) || !strings.Contains(err.Error(), "maxSessionTimeout")) {
				t.Errorf("the error does not name the timeout and the remedy: %v", err)
			}
		})
	}
	bounds.Bubble(t, func(t *testing.T) {
		var granted atomic.Int32
		granted.Store(100)
		h := &hostileServer{grant: func(int64, int32) (int64, int32) { return 7, granted.Load() }}
		m := connectTo(t, h)
		if got := current(t, m).Timeout(); got != 100*time.Millisecond {
			t.Errorf("timeout %v, want the least that is allowed", got)
		}
		granted.Store(1)
		h.hangUp()
		time.Sleep(10 * time.Second)
		before, _ := h.count()
		time.Sleep(time.Minute)
		if after, _ := h.count(); after-before > 150 {
			t.Errorf("%d connections in a minute to a server that grants 1 ms, want about one a second", after-before)
		}
	})
}

// A session timeout above a day counts as a day, and the limits of connections do not grow with it: a dial ends after
// 30 s, and a silent connection after two minutes.
func TestATimeoutThatIsHuge(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		var silent atomic.Bool
		h := &hostileServer{
			grant:  func(int64, int32) (int64, int32) { return 7, math.MaxInt32 },
			answer: func(*hostilePeer, int32, int32, []byte) bool { return silent.Load() },
		}
		d := &dials{then: h.dial}
		m := connectTo(t, h, session.WithDialer(d.dial))
		s := current(t, m)
		if got := s.Timeout(); got != 24*time.Hour {
			t.Errorf("timeout %v, want a day", got)
		}
		conn := s.Connection()
		time.Sleep(time.Hour)
		if s.Connection() != conn {
			t.Error("the connection was not kept alive")
		}
		silent.Store(true)
		time.Sleep(3 * time.Minute)
		if s.Connection() == conn {
			t.Error("a connection was silent for three minutes and is kept")
		}
		before := len(d.seen())
		time.Sleep(3 * time.Minute)
		if n := len(d.seen()) - before; n < 4 {
			t.Errorf("%d attempts in three minutes, want one at least each 31 s", n)
		}
	})
}

// With a huge timeout, too, an answer that has stopped ends its connection, while the answers of other callers keep
// arriving in its place. To see this test fail, have keeper.plan make a contact every T/12 while a lease is prepared.
func TestAnAnswerThatStopsUnderAHugeTimeout(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		h := &hostileServer{
			grant: func(int64, int32) (int64, int32) { return 7, math.MaxInt32 },
			answer: func(p *hostilePeer, xid, op int32, body []byte) bool {
				if !aboutBig(op, body) {
					return false
				}
				p.raw(data(xid, 1<<20)[:1000])
				return true
			},
		}
		s := current(t, connectTo(t, h))
		l := s.Lease()
		l.Prepare()
		defer l.End()
		time.Sleep(time.Second) // the keeper has planned its next step
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for ctx.Err() == nil {
				call, done := context.WithTimeout(ctx, 30*time.Second)
				s.Exists(call, "/x")
				<-call.Done()
				done()
			}
		}()
		began := time.Now()
		_, _, err := s.Get(t.Context(), "/big")
		mustBe(t, err, session.ErrAnswerTooSlow)
		// Four attempts of two minutes each, and up to a minute until the keeper looks.
		if took := time.Since(began); took > 13*time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}

// The client leaves a server that answers requests that were never made, or sends events without a watch, and uses it
// again at a pace that falls to about one connection a second. To see this test fail, ignore the other
// frames, or events without a watch.
func TestAFloodOfFramesEndsTheConnection(t *testing.T) {
	event := func(p *hostilePeer) {
		p.frame(ints(-1), longs(-1), ints(0, 3, 3, 2), []byte("/x"))
	}
	for name, c := range map[string]struct {
		send func(*hostilePeer)
		most int // frames before the connection ends
	}{
		"answers":     {func(p *hostilePeer) { p.reply(4711, 0, make([]byte, 100)) }, 1},
		"xid zero":    {func(p *hostilePeer) { p.reply(0, 0) }, 1},
		"credentials": {func(p *hostilePeer) { p.reply(-4, 0) }, 1},
		"pings":       {func(p *hostilePeer) { p.reply(-2, 0) }, 1},
		"events":      {event, 1001},
	} {
		t.Run(name, func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				var lines atomic.Int64
				log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(countWriter{&lines}), zap.DebugLevel))
				h := &hostileServer{}
				connectTo(t, h, session.WithLogger(log))
				h.setAnswer(func(p *hostilePeer, xid, op int32, _ []byte) bool {
					p.plain(xid, op)
					for range c.most + 100 {
						c.send(p)
					}
					return true
				})
				h.hangUp()
				time.Sleep(20 * time.Second)
				before, _ := h.count()
				was := lines.Load()
				time.Sleep(time.Minute)
				after, _ := h.count()
				if n := after - before; n > 150 || n < 20 {
					t.Errorf("%d connections in a minute, want about one a second", n)
				}
				if n := lines.Load() - was; n > 300 {
					t.Errorf("%d log lines in a minute", n)
				}
			})
		})
	}
}

// countWriter counts lines.
type countWriter struct{ n *atomic.Int64 }

func (w countWriter) Write(p []byte) (int, error) { w.n.Add(1); return len(p), nil }

// Pause returns an error in every round when ctx or the session has ended, and otherwise nil.
func TestPauseAfterTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		m := srv.Connect(t)
		s := current(t, m)
		rounds := []int{-1, 0, 1, 2, 20}
		for _, round := range rounds {
			if err := s.Pause(t.Context(), round); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
			mustBe(t, s.Pause(ended, round), context.Canceled)
		}
		srv.ExpireSession(s.ID())
		<-s.Done()
		next := current(t, m)
		m.Close()
		for _, round := range rounds {
			mustBe(t, s.Pause(t.Context(), round), session.ErrLost)
			mustBe(t, next.Pause(t.Context(), round), session.ErrClosed)
		}
	})
}
