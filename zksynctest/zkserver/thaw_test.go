package zkserver_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A leader that was frozen for longer than a session lives does two things at once when
// it goes on: it handles the requests that have piled up, and it sweeps. A forwarded
// transaction that comes first is answered, and its session expires all the same.
func TestATransactionRacesTheSweep(t *testing.T) {
	const timeout = 4 * time.Second
	for _, pause := range []time.Duration{timeout / 4, timeout, 2 * timeout} {
		for _, endpoint := range []int{1, 3} {
			for _, sweepFirst := range []bool{false, true} {
				name := fmt.Sprintf("paused for %v, client at %d, sweep first %v", pause, endpoint, sweepFirst)
				t.Run(name, func(t *testing.T) {
					ensemble(t, 3, zkserver.Config{SyncLimit: 20}, func(t *testing.T, s *zkserver.Server) {
						r, watcher := at(t, s, endpoint, timeout), at(t, s, 2, 40*time.Second)
						r.create("/e", 1)
						watcher.want(0, zkserver.OpExists, watchRec("/e"))
						time.Sleep(2500 * time.Millisecond) // the leader heard of it at 0 s or 1 s
						s.SweepFirst(sweepFirst)
						s.Endpoint(3).Freeze()
						r.send(zkserver.OpSetData, setRec("/"))
						time.Sleep(pause)
						s.Endpoint(3).Thaw()
						thawed := time.Now()

						expires := pause >= timeout
						answered := !expires || !sweepFirst
						if in, err := r.read(); (err == nil) != answered {
							t.Fatalf("%v, want an answer: %v", err, answered)
						} else if err == nil {
							if in.take(12); in.i32() != 0 {
								t.Fatal("the transaction failed")
							}
						} else if !errors.Is(err, io.EOF) {
							t.Fatal(err)
						}
						if version := int32(0); answered {
							version = 1
							if got := watcher.stat("/").version; got != version {
								t.Fatalf("version %d, want %d", got, version)
							}
						}
						// The leader touches the sessions of its own clients with their requests.
						if saved := answered && endpoint == 3; !expires || saved {
							synctest.Wait()
							time.Sleep(time.Second)
							if len(s.Sessions()) != 2 {
								t.Fatal("the session has expired")
							}
							return
						}
						if ev := watcher.event(); ev != (event{2, "/e"}) {
							t.Fatalf("%v", ev)
						}
						if d := time.Since(thawed); d > 100*time.Millisecond {
							t.Fatalf("the session expired %v after the leader went on", d)
						}
						if answered {
							r.closed()
						}
						if again := r.moved(s, endpoint).welcome(); again.id != 0 {
							t.Fatal("the session lives")
						}
					})
				})
			}
		}
	}
}

// What followers have heard while their leader was frozen comes too late: the leader
// has to ask for it first.
func TestTouchesWhileTheLeaderIsFrozenComeTooLate(t *testing.T) {
	for _, sweepFirst := range []bool{false, true} {
		ensemble(t, 3, zkserver.Config{SyncLimit: 20}, func(t *testing.T, s *zkserver.Server) {
			r, other := at(t, s, 1, 4*time.Second), at(t, s, 1, 12*time.Second)
			s.SweepFirst(sweepFirst)
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
			// That of the other session came at 8 s, and makes it good until 22 s.
			time.Sleep(12 * time.Second)
			if len(s.Sessions()) != 1 {
				t.Fatal("the report after the freeze was lost")
			}
			other.closed()
		})
	}
}

// A single server that was frozen races in the same way, and its own clients touch.
func TestASingleServerRacesTheSweep(t *testing.T) {
	for _, sweepFirst := range []bool{false, true} {
		inBubble(t, func(t *testing.T, s *zkserver.Server) {
			r := session(t, s, 4*time.Second)
			s.SweepFirst(sweepFirst)
			s.Freeze()
			xid := r.send(zkserver.OpPing, nil)
			time.Sleep(10 * time.Second)
			s.Thaw()
			if sweepFirst {
				r.closed()
				return
			}
			if p := r.recv(); p.xid != xid || xid != -2 {
				t.Fatalf("%+v", p)
			}
			time.Sleep(3 * time.Second)
			r.want(0, zkserver.OpPing, nil)
		})
	}
}

// A leader whose followers are frozen commits nothing. It answers what it knows by
// itself, and the rest when a follower goes on.
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
