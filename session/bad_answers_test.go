package session_test

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
)

// aboutBig reports whether a request is a read of /big.
func aboutBig(op int32, body []byte) bool {
	return (op == opGet || op == opChildren || op == opExists) && strings.HasPrefix(string(body[4:]), "/big")
}

// data builds the answer to a read of n bytes.
func data(xid int32, n int) []byte {
	return framed(ints(xid), longs(1), ints(0, int32(n)), make([]byte, n), make([]byte, 68))
}

// A read whose answer is too large ends after it has broken two connections, with the size and the option in its
// error, and the session and its other requests continue. To see this test fail, remove the line of requester.repeat
// that adds to guilty.
func TestAnAnswerThatIsTooLargeEndsItsRead(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		h := &hostileServer{answer: func(p *hostilePeer, xid, op int32, body []byte) bool {
			if !aboutBig(op, body) {
				return false
			}
			p.raw(binary.BigEndian.AppendUint32(nil, 300<<20))
			p.raw(append(ints(xid), make([]byte, 100)...))
			return true
		}}
		m := connectTo(t, h)
		s := current(t, m)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, _, err := s.Get(t.Context(), "/small"); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			time.Sleep(2 * time.Second)
			before, _ := h.count()
			read := make(chan error, 1)
			go func() { _, _, err := s.Get(ctx, "/big"); read <- err }()
			others := 0
			var err error
			for err == nil {
				select {
				case err = <-read:
				default:
					if _, _, err := s.Get(t.Context(), "/small"); err != nil {
						t.Fatalf("another request: %v", err)
					}
					others++
					time.Sleep(10 * time.Millisecond)
				}
			}
			mustBe(t, err, session.ErrAnswerTooLarge)
			if session.ClassOf(err) != session.ClassFinal || !strings.Contains(err.Error(), "314572800 bytes") || !strings.Contains(err.Error(), "WithMaxAnswer") {
				t.Errorf("error %v of class %v, want a final one that names the size and the option", err, session.ClassOf(err))
			}
			if _, _, err := s.Get(t.Context(), "/small"); err != nil {
				t.Fatal(err)
			}
			if dials, _ := h.count(); dials-before != 2 || others < 2 {
				t.Errorf("%d connections were broken, want 2; %d other requests were answered meanwhile", dials-before, others)
			}
		}
		if s.Err() != nil {
			t.Errorf("the session ended: %v", s.Err())
		}
	})
}

// WithMaxAnswer raises and lowers the limit, to the byte.
func TestWithMaxAnswer(t *testing.T) {
	for _, c := range []struct {
		size int
		fits bool
	}{{4096, true}, {4097, false}} {
		bounds.Bubble(t, func(t *testing.T) {
			h := &hostileServer{answer: func(p *hostilePeer, xid, op int32, body []byte) bool {
				if !aboutBig(op, body) {
					return false
				}
				p.raw(data(xid, c.size-16-4-68))
				return true
			}}
			s := current(t, connectTo(t, h, session.WithMaxAnswer(4096)))
			_, _, err := s.Get(t.Context(), "/big")
			if c.fits && err != nil {
				t.Errorf("%d bytes: %v", c.size, err)
			}
			if !c.fits {
				mustBe(t, err, session.ErrAnswerTooLarge)
			}
		})
	}
}

// An Inbox delivers ErrAnswerTooLarge like a refusal, and its
// other reads are answered. To see this test fail, have InboxRead.settle repeat every
// lost answer.
func TestAnInboxDeliversAnswersThatAreTooLarge(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		h := &hostileServer{answer: func(p *hostilePeer, xid, op int32, body []byte) bool {
			if !aboutBig(op, body) {
				return false
			}
			p.raw(data(xid, 8192))
			return true
		}}
		s := current(t, connectTo(t, h, session.WithMaxAnswer(4096)))
		in := s.NewInbox()
		defer in.Close()
		in.Data("/big", "big")
		in.Data("/small", "small")
		got := map[any]error{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for len(got) < 2 {
			batch, err := in.Receive(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range batch {
				if d.Kind == session.InboxAnswer {
					got[d.Tag] = d.Err
				}
			}
		}
		mustBe(t, got["big"], session.ErrAnswerTooLarge)
		if got["small"] != nil {
			t.Errorf("the other read: %v", got["small"])
		}
	})
}

// An answer that arrives slowly is received, regardless of its duration, if it arrives at 16 KiB a second and nothing
// is held. The session and its connection stay alive. To see this test fail, remove the call of noteProgress, or make
// arrivals.Read set no new deadline.
func TestASlowAnswerIsASignOfLife(t *testing.T) {
	for name, lease := range map[string]func(*session.Session){
		"idle":           func(*session.Session) {},
		"lease open":     func(s *session.Session) { s.Lease().Prepare() },
		"holds expected": func(s *session.Session) { s.Lease() },
	} {
		t.Run(name, func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				const size, speed = 2 << 20, 32 << 10 // a minute
				h := &hostileServer{answer: func(p *hostilePeer, xid, op int32, body []byte) bool {
					if !aboutBig(op, body) {
						return false
					}
					p.slowly(data(xid, size), speed)
					return true
				}}
				s := current(t, connectTo(t, h, session.WithTimeout(3*time.Second)))
				lease(s)
				start := time.Now()
				got, _, err := s.Get(t.Context(), "/big")
				if err != nil || len(got) != size {
					t.Errorf("%d bytes, error %v", len(got), err)
				}
				if took := time.Since(start); took < 30*time.Second {
					t.Errorf("it took %v: the test is of no use", took)
				}
				if dials, _ := h.count(); dials != 1 || s.Err() != nil {
					t.Errorf("%d connections; the session: %v", dials, s.Err())
				}
			})
		})
	}
}

// A slow answer does not cost a holder its hold: the connection is closed before the deadline, and the read ends
// after the second time with the speed in its error. To see this test fail, make keeper.patience always return limit,
// or remove the call of commitFirst.
func TestASlowAnswerCostsNoHold(t *testing.T) {
	for name, speed := range map[string]int{"8 MB/s": 8 << 20, "64 KiB/s": 64 << 10, "a byte a step": 1} {
		t.Run(name, func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				h := &hostileServer{answer: func(p *hostilePeer, xid, op int32, body []byte) bool {
					if !aboutBig(op, body) {
						return false
					}
					p.slowly(data(xid, 22<<20), speed)
					return true
				}}
				s := current(t, connectTo(t, h, session.WithTimeout(3*time.Second)))
				hold(t, s)
				for range 3 {
					start := time.Now()
					before, _ := h.count()
					_, _, err := s.Get(t.Context(), "/big")
					mustBe(t, err, session.ErrAnswerTooSlow)
					if err == nil || session.ClassOf(err) != session.ClassFinal || !strings.Contains(err.Error(), "bytes/s") || !strings.Contains(err.Error(), "WithTimeout") {
						t.Errorf("error %v, want a final one with the speed", err)
					}
					if took := time.Since(start); took > 10*time.Second {
						t.Errorf("it took %v, want at most a few timeouts", took)
					}
					if _, _, err := s.Get(t.Context(), "/small"); err != nil {
						t.Fatal(err)
					}
					if dials, _ := h.count(); dials-before != 2 {
						t.Errorf("%d connections were broken, want 2", dials-before)
					}
					if s.Err() != nil {
						t.Fatalf("the hold is lost: %v", s.Err())
					}
				}
			})
		})
	}
}

// Many slow reads at once cost no hold either, although each new connection takes T/12:
// the transaction that proves the session alive goes first on each of them. To see this
// test fail, remove the call of commitFirst.
func TestManySlowAnswersCostNoHold(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		h := &hostileServer{answer: func(p *hostilePeer, xid, op int32, body []byte) bool {
			if !aboutBig(op, body) {
				return false
			}
			p.slowly(data(xid, 22<<20), 8<<20)
			return true
		}}
		s := current(t, connectTo(t, h, session.WithTimeout(3*time.Second), session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			time.Sleep(250 * time.Millisecond) // the way to the server
			return h.dial(ctx, network, address)
		})))
		hold(t, s)
		errs := make(chan error)
		for range 5 {
			go func() { _, _, err := s.Get(t.Context(), "/big"); errs <- err }()
		}
		for range 5 {
			mustBe(t, <-errs, session.ErrAnswerTooSlow)
		}
		if s.Err() != nil {
			t.Errorf("the hold is lost: %v", s.Err())
		}
	})
}

// An answer that trickles, or stops in the middle, ends its read as well when nothing is held. To see this test fail,
// make keeper.patience never return now.
func TestAnAnswerThatTricklesEndsItsRead(t *testing.T) {
	// Each attempt takes the session timeout. Of an answer that stops there are three repetitions.
	for name, most := range map[string]time.Duration{"trickles": 3 * timeout, "stops": 5 * timeout} {
		t.Run(name, func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				h := &hostileServer{answer: func(p *hostilePeer, xid, op int32, body []byte) bool {
					if !aboutBig(op, body) {
						return false
					}
					answer := data(xid, 1<<20)
					if name == "stops" {
						p.raw(answer[:1000])
					} else {
						p.slowly(answer, 20)
					}
					return true
				}}
				s := current(t, connectTo(t, h))
				start := time.Now()
				_, _, err := s.Get(t.Context(), "/big")
				mustBe(t, err, session.ErrAnswerTooSlow)
				if took := time.Since(start); took > most {
					t.Errorf("it took %v, want at most %v", took, most)
				}
			})
		})
	}
}

// A write whose answer breaks the connection says that its outcome is unknown.
func TestAWriteWithABadAnswerHasNoOutcome(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		h := &hostileServer{answer: func(p *hostilePeer, xid, op int32, body []byte) bool {
			if op == opSet || op == opCreate {
				p.raw(data(xid, 8192))
				return true
			}
			return false
		}}
		s := current(t, connectTo(t, h, session.WithMaxAnswer(4096)))
		for name, write := range map[string]func() error{
			"create": func() error { _, err := s.Create(t.Context(), "/x", nil, 0); return err },
			"set":    func() error { _, err := s.Set(t.Context(), "/x", nil, 3); return err },
		} {
			err := write()
			mustBe(t, err, session.ErrConnectionLost, session.ErrAnswerTooLarge)
			if session.ClassOf(err) != session.ClassConnectionLost {
				t.Errorf("%s: class %v of %v, want that the outcome is unknown", name, session.ClassOf(err), err)
			}
		}
	})
}

// A MultiRead whose answer is too large in one piece is carried out read by read, and a read whose own answer is
// too large fails alone.
func TestMultiReadThatIsTooLargeTogether(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		h := &hostileServer{answer: func(p *hostilePeer, xid, op int32, body []byte) bool {
			if op == 22 || aboutBig(op, body) {
				p.raw(data(xid, 8192))
				return true
			}
			return false
		}}
		s := current(t, connectTo(t, h, session.WithMaxAnswer(4096)))
		results, err := s.MultiRead(t.Context(), session.ReadData("/a"), session.ReadData("/big"), session.ReadData("/b"))
		if err != nil || len(results) != 3 || string(results[2].Data) != "abc" {
			t.Fatalf("%v, error %v", results, err)
		}
		mustBe(t, results[1].Err, session.ErrAnswerTooLarge)
	})
}
