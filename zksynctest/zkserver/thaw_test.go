package zkserver_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

var thawOrders = []zkserver.ThawOrder{
	zkserver.RequestsFirst, zkserver.RequestsDuringSweep, zkserver.RequestsAfterMark, zkserver.SweepFirst,
}

// SetThawOrder chooses whether a leader that was frozen handles requests or ends sessions first. A
// forwarded transaction that comes first is answered, but its session expires.
func TestATransactionRacesTheSweep(t *testing.T) {
	const timeout = 4 * time.Second
	type outcome struct {
		answered, done bool
		code           zkserver.Code
		lives          bool
	}
	fine := outcome{answered: true, done: true, lives: true}
	late := outcome{answered: true, done: true}
	refused := outcome{answered: true, code: zkserver.ErrSessionExpired}
	for _, c := range []struct {
		name     string
		endpoint int
		pause    time.Duration
		want     []outcome // one for each of thawOrders
	}{
		{"over a follower for T/4", 1, timeout / 4, []outcome{fine, fine, fine, fine}},
		{"over the leader for T/4", 3, timeout / 4, []outcome{fine, fine, fine, fine}},
		{"over a follower for T", 1, timeout, []outcome{late, late, refused, {}}},
		{"over the leader for T", 3, timeout, []outcome{fine, late, refused, {}}},
		{"over a follower for 2T", 1, 2 * timeout, []outcome{late, late, refused, {}}},
		{"over the leader for 2T", 3, 2 * timeout, []outcome{fine, late, refused, {}}},
	} {
		for i, order := range thawOrders {
			t.Run(fmt.Sprintf("%s, %v", c.name, order), func(t *testing.T) {
				ensemble(t, 3, zkserver.Config{SyncLimit: 20}, func(t *testing.T, s *zkserver.Server) {
					r, watcher := at(t, s, c.endpoint, timeout), at(t, s, 2, 40*time.Second)
					r.create("/e", 1)
					watcher.want(0, zkserver.OpExists, watchRec("/e"))
					time.Sleep(2500 * time.Millisecond) // the leader last heard of the session at 0 s or 1 s
					s.SetThawOrder(order)
					s.Endpoint(3).Freeze()
					r.send(zkserver.OpSetData, setRec("/"))
					time.Sleep(c.pause)
					s.Endpoint(3).Thaw()
					thawed := time.Now()

					var got outcome
					if in, err := r.read(); err == nil {
						in.take(12)
						got.answered, got.code = true, zkserver.Code(in.i32())
					} else if !errors.Is(err, io.EOF) {
						t.Fatal(err)
					}
					time.Sleep(time.Until(thawed.Add(time.Second / 10)))
					got.lives = len(s.Sessions()) == 2
					ev := watcher.send(zkserver.OpPing, nil)
					if events, _ := watcher.until(ev); (len(events) == 0) != got.lives {
						t.Errorf("%v, the session lives: %v", events, got.lives)
					}
					got.done = watcher.stat("/").version == 1
					if again := r.moved(s, c.endpoint).welcome(); (again.id == r.id) != got.lives {
						t.Errorf("a reconnect gets session %#x, the session lives: %v", again.id, got.lives)
					}
					if want := c.want[i]; got != want {
						t.Errorf("%+v, want %+v", got, want)
					}
				})
			})
		}
	}
}

// While a leader is about to end sessions, it refuses writes of these sessions and reconnects of
// their clients.
func TestWritesDuringTheSweep(t *testing.T) {
	ensemble(t, 3, zkserver.Config{SyncLimit: 20}, func(t *testing.T, s *zkserver.Server) {
		r, closes, comes := at(t, s, 1, 4*time.Second), at(t, s, 1, 4*time.Second), at(t, s, 2, 4*time.Second)
		s.SetThawOrder(zkserver.RequestsAfterMark)
		s.Endpoint(3).Freeze()
		check := sub(zkserver.OpCheck, rec{}.str("/").i32(-1))
		write, batch := r.send(zkserver.OpSetData, setRec("/")), r.send(zkserver.OpMulti, multi(check, check))
		sync := r.send(zkserver.OpSync, rec{}.str("/"))
		comes = comes.moved(s, 1)
		end := closes.send(zkserver.OpCloseSession, nil)
		time.Sleep(10 * time.Second)
		zxid := s.Zxid()
		s.Endpoint(3).Thaw()
		if p := r.recv(); p.xid != write || p.code != zkserver.ErrSessionExpired || p.zxid <= zxid {
			t.Errorf("write: %+v", p)
		}
		p := r.recv()
		if p.xid != batch || p.code != 0 {
			t.Errorf("multi: %+v", p)
		}
		for _, want := range []int32{-112, -2} {
			p.i32()
			p.take(1)
			if code := p.i32(); code != want || p.i32() != want {
				t.Errorf("part of a multi: %d, want %d", code, want)
			}
		}
		if p := r.recv(); p.xid != sync || p.code != 0 {
			t.Errorf("sync: %+v", p)
		}
		if p := closes.recv(); p.xid != end || p.code != 0 {
			t.Errorf("close: %+v", p)
		}
		if comes.welcome().id != 0 {
			t.Error("a client has come back to a session that is being ended")
		}
		r.closed()
		if len(s.Sessions()) != 0 {
			t.Errorf("%+v", s.Sessions())
		}
	})
}

// SetThawOrder panics for an unknown value.
func TestThawOrderThatIsNone(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		defer func() {
			if said := recover(); said != "zkserver: SetThawOrder: there is no ThawOrder(4)" {
				t.Errorf("%v", said)
			}
		}()
		s.SetThawOrder(4)
	})
}

// Touches that followers receive while their leader is frozen come too late, since the leader has to ask for them
// first.
func TestTouchesWhileTheLeaderIsFrozenComeTooLate(t *testing.T) {
	for _, order := range thawOrders {
		ensemble(t, 3, zkserver.Config{SyncLimit: 20}, func(t *testing.T, s *zkserver.Server) {
			r, other := at(t, s, 1, 4*time.Second), at(t, s, 1, 12*time.Second)
			s.SetThawOrder(order)
			s.Endpoint(3).Freeze()
			for range 8 {
				time.Sleep(time.Second)
				r.want(0, zkserver.OpPing, nil)
				other.want(0, zkserver.OpPing, nil)
			}
			s.Endpoint(3).Thaw()
			r.closed()
			if list := s.Sessions(); len(list) != 1 || list[0].ID != other.id {
				t.Fatalf("%+v, want the session of 12s alone", list)
			}
			// The touch of the other session came at 8 s, so that it lives until 22 s.
			time.Sleep(12 * time.Second)
			if len(s.Sessions()) != 1 {
				t.Fatal("the report after the freeze was lost")
			}
			other.closed()
		})
	}
}

// A ping of the leader that is due directly after its freeze does not come before the sweep.
func TestAPingRightAfterTheFreezeComesTooLate(t *testing.T) {
	ensemble(t, 3, zkserver.Config{SyncLimit: 20}, func(t *testing.T, s *zkserver.Server) {
		r := at(t, s, 1, 4*time.Second)
		time.Sleep(2200 * time.Millisecond)
		s.Endpoint(3).Freeze()
		time.Sleep(6400 * time.Millisecond)
		r.want(0, zkserver.OpPing, nil)
		time.Sleep(370 * time.Millisecond) // the leader pings 30 ms later, and sweeps after 50 ms
		s.Endpoint(3).Thaw()
		thawed := time.Now()
		r.closed()
		if d := time.Since(thawed); d > 100*time.Millisecond {
			t.Fatalf("the session expired %v after the leader went on, want it to expire with the first sweep", d)
		}
	})
}

// A standalone server that was frozen handles requests or ends sessions first, as SetThawOrder
// says, and requests of its own clients touch their sessions.
func TestASingleServerRacesTheSweep(t *testing.T) {
	for _, order := range thawOrders {
		inBubble(t, func(t *testing.T, s *zkserver.Server) {
			r := session(t, s, 4*time.Second)
			s.SetThawOrder(order)
			s.Freeze()
			r.send(zkserver.OpPing, nil)
			time.Sleep(10 * time.Second)
			s.Thaw()
			if order != zkserver.SweepFirst {
				want := map[zkserver.ThawOrder]zkserver.Code{zkserver.RequestsAfterMark: zkserver.ErrSessionExpired}[order]
				if p := r.recv(); p.xid != -2 || p.code != want {
					t.Errorf("%v: the ping is answered %v, want %v", order, p.code, want)
				}
			}
			if order != zkserver.RequestsFirst {
				r.closed()
				return
			}
			time.Sleep(3 * time.Second)
			r.want(0, zkserver.OpPing, nil)
		})
	}
}

// A leader whose followers are frozen commits nothing. It answers requests that need no follower,
// and the other requests when a follower resumes.
func TestALeaderWhoseFollowersAreFrozen(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		a, b := at(t, s, 3, 40*time.Second), at(t, s, 3, 40*time.Second)
		s.Endpoint(1).Freeze()
		s.Endpoint(2).Freeze()
		if n := s.Leader(); n != 0 {
			t.Fatalf("endpoint %d leads", n)
		}
		a.want(0, zkserver.OpSync, rec{}.str("/"))
		a.stat("/")
		a = a.moved(s, 3).welcome()
		fresh := dialAt(t, s, 3)
		fresh.hello(0, 0, 0, "")
		b.send(zkserver.OpSetData, setRec("/"))
		b.silent(5 * time.Second)
		fresh.silent(time.Second)
		s.Endpoint(1).Thaw()
		if p := b.recv(); p.code != 0 {
			t.Fatalf("%v", p.code)
		}
		if fresh.welcome().id == 0 {
			t.Fatal("no session")
		}
		a.want(0, zkserver.OpPing, nil)
		s.Endpoint(2).Thaw()
		if n := s.Followers(); len(n) != 2 || s.Zxid()>>32 != 1 {
			t.Fatalf("followers %v, zxid %#x", n, s.Zxid())
		}
	})
}

// A write that a leader answers with ErrSessionExpired ends a lag like any other write: the next read shows the tree as of the answer.
func TestARefusedWriteEndsTheLag(t *testing.T) {
	for name, lag := range map[string]func(*zkserver.Server, *raw){
		"endpoint": func(s *zkserver.Server, _ *raw) { s.Endpoint(1).Lag() },
		"session":  func(s *zkserver.Server, r *raw) { s.Lag(r.id) },
	} {
		t.Run(name, func(t *testing.T) {
			three(t, func(t *testing.T, s *zkserver.Server) {
				s.SetThawOrder(zkserver.RequestsAfterMark)
				r := at(t, s, 1, 4*time.Second)
				lag(s, r)
				if err := s.Create("/new", nil); err != nil {
					t.Fatal(err)
				}
				s.Endpoint(3).Freeze()
				time.Sleep(9 * time.Second)
				xid := r.send(zkserver.OpSetData, setRec("/"))
				s.Endpoint(3).Thaw()
				write := r.recv()
				if write.xid != xid || write.code != zkserver.ErrSessionExpired {
					t.Fatalf("answer %d with code %v, want %d with ErrSessionExpired", write.xid, write.code, xid)
				}
				if read := r.want(0, zkserver.OpExists, existsRec("/new")); read.zxid < write.zxid {
					t.Errorf("a read has zxid %#x, behind a write with zxid %#x", read.zxid, write.zxid)
				}
			})
		})
	}
}
