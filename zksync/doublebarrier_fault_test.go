package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A mortal is a process that can crash.
type mortal struct {
	*zksync.DoubleBarrier
	srv  *zksynctest.Server
	m    *session.Manager
	id   int64
	ctx  context.Context // of the participant's calls
	stop context.CancelFunc
}

func newMortal(t testing.TB, srv *zksynctest.Server, timeout time.Duration) *mortal {
	d := &mortal{srv: srv, m: srv.Connect(t, session.WithTimeout(timeout))}
	d.id = live(t, d.m).ID()
	d.ctx, d.stop = context.WithCancel(t.Context())
	d.DoubleBarrier = zksync.NewDoubleBarrier(d.m, "/b", 2)
	return d
}

// crash cuts it off for good: nothing more is heard of it, and in time the
// server expires its session.
func (d *mortal) crash() {
	d.srv.Partition(d.id)
	d.stop()
}

// crashAt lets it crash when it asks for something about path.
func (d *mortal) crashAt(path string) {
	d.srv.Inject(zksynctest.Fault{Session: d.id, Path: path, Op: zkserver.OpMulti, Do: zksynctest.Call(d.crash)})
	d.srv.Inject(zksynctest.Fault{Session: d.id, Path: path, Op: zkserver.OpMulti, Do: zksynctest.Drop})
}

// wantCount wants err to say how many were there.
func wantCount(t testing.TB, err error, there, size int, cause error) {
	t.Helper()
	var c *zksync.CountError
	if !errors.As(err, &c) || c.There != there || c.Size != size || !errors.Is(err, cause) {
		t.Errorf("error %v (%+v), want one that %d of %d were there, and %v", err, c, there, size, cause)
	}
}

// A participant that gives up does not count, and its CountError begins with the numbers of those present and those
// expected.
func TestDoubleBarrierThoseWhoGiveUpDoNotCount(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		a, b, c := double(t, srv, 3), double(t, srv, 3), double(t, srv, 3)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first := started(ctx, a.Enter)
		second := started(ctx, b.Enter)
		one, two := <-first, <-second // and no synctest.Wait: the late one comes at once
		late := make(chan error, 1)
		go func() { late <- c.Enter(t.Context()) }()
		time.Sleep(2 * time.Minute)
		pending(t, "the Enter of a late third", late)
		// The first participant that gives up still finds both.
		most := 0
		for _, err := range []error{one, two} {
			var c *zksync.CountError
			if !errors.As(err, &c) || c.There < 1 || c.Size != 3 || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("one who gave up: %v", err)
				continue
			}
			most = max(most, c.There)
		}
		if most != 2 {
			t.Errorf("%v and %v: want one to say that 2 were there", one, two)
		}
		// They come again, and now there are three.
		in := []<-chan error{entering(t.Context(), a), entering(t.Context(), b), late}
		for _, done := range in {
			mustEnd(t, "Enter", done, nil)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantCount(t, a.Leave(ctx), 2, 3, context.DeadlineExceeded)
		out := leaving(t.Context(), b)
		mustLeave(t, c)
		mustEnd(t, "Leave", out, nil)
		wholeRound(t, srv, a, b, c)
	})
}

// If no server answers, Enter and Leave take at most a second longer than their ctx, and complete the rest in the
// background.
func TestDoubleBarrierGivesUpWithoutAnAnswer(t *testing.T) {
	for _, silent := range []struct {
		name       string
		begin, end func(srv *zksynctest.Server, id int64)
	}{
		{"partition", (*zksynctest.Server).Partition, (*zksynctest.Server).Heal},
		{"server down", func(srv *zksynctest.Server, _ int64) { srv.Stop() }, func(srv *zksynctest.Server, _ int64) { srv.Start() }},
	} {
		t.Run(silent.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				a, b, c := zksync.NewDoubleBarrier(m, "/b", 2), double(t, srv, 2), double(t, srv, 2)
				id := live(t, m).ID()
				quickly := func(do func(context.Context) error) error {
					ctx, cancel := context.WithCancel(t.Context())
					done := started(ctx, do)
					silent.begin(srv, id)
					start := time.Now()
					cancel()
					err := <-done
					if time.Since(start) > time.Second {
						t.Errorf("it returned after %v", time.Since(start))
					}
					return err
				}
				wantCount(t, quickly(a.Enter), 1, 2, context.Canceled)
				again := entering(t.Context(), a)
				pending(t, "Enter while what was given up is not gone", again)
				silent.end(srv, id)
				time.Sleep(8 * time.Second)
				in := entering(t.Context(), b)
				mustEnd(t, "Enter", in, nil)
				mustEnd(t, "Enter", again, nil)
				wantCount(t, quickly(a.Leave), 1, 2, context.Canceled)
				silent.end(srv, id)
				time.Sleep(8 * time.Second)
				mustLeave(t, b)
				wholeRound(t, srv, a, b)
				wholeRound(t, srv, a, c)
			})
		})
	}
}

// A participant that crashes delays the others by its session and one session timeout more at most.
func TestDoubleBarrierCrashes(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, srv *zksynctest.Server, dead *mortal, a, b *zksync.DoubleBarrier){
		"while entering": func(t *testing.T, srv *zksynctest.Server, dead *mortal, a, b *zksync.DoubleBarrier) {
			entering(dead.ctx, dead.DoubleBarrier)
			dead.crash()
			time.Sleep(time.Minute)
			wholeRound(t, srv, a, b)
		},
		"before it opens the barrier": func(t *testing.T, srv *zksynctest.Server, dead *mortal, _, b *zksync.DoubleBarrier) {
			// It looks again between T/2 and T after its last look, when the session of the dead one is over.
			a := zksync.NewDoubleBarrier(srv.Connect(t, session.WithTimeout(30*time.Second)), "/b", 2)
			in := entering(t.Context(), a)
			dead.crashAt("/b/ready")
			entering(dead.ctx, dead.DoubleBarrier)
			time.Sleep(time.Minute)
			pending(t, "Enter", in)
			mustEnter(t, b)
			mustEnd(t, "Enter", in, nil)
			out := leaving(t.Context(), a)
			mustLeave(t, b)
			mustEnd(t, "Leave", out, nil)
		},
		// While its session lasts it counts as a participant that has come.
		"before it opens the barrier, and is not missed": func(t *testing.T, srv *zksynctest.Server, _ *mortal, a, b *zksync.DoubleBarrier) {
			dead := newMortal(t, srv, 40*time.Second)
			in := entering(t.Context(), a)
			dead.crashAt("/b/ready")
			entering(dead.ctx, dead.DoubleBarrier)
			time.Sleep(15 * time.Second)
			mustEnd(t, "Enter", in, nil)
			out := leaving(t.Context(), a)
			pending(t, "Leave while the session of another lasts", out)
			mustEnd(t, "Leave", out, nil)
		},
		"inside": func(t *testing.T, srv *zksynctest.Server, dead *mortal, a, b *zksync.DoubleBarrier) {
			in := entering(t.Context(), a)
			mustEnter(t, dead.DoubleBarrier)
			mustEnd(t, "Enter", in, nil)
			out := leaving(t.Context(), a)
			waiting := entering(t.Context(), b)
			pending(t, "Leave", out)
			dead.crash()
			time.Sleep(time.Minute)
			mustEnd(t, "Leave", out, nil)
			if err := dead.Leave(t.Context()); !errors.Is(err, zksync.ErrLost) {
				t.Errorf("Leave after a loss: %v", err)
			}
			mustEnter(t, a)
			mustEnd(t, "Enter", waiting, nil)
			out = leaving(t.Context(), a)
			mustLeave(t, b)
			mustEnd(t, "Leave", out, nil)
		},
		"after it has left": func(t *testing.T, srv *zksynctest.Server, dead *mortal, a, b *zksync.DoubleBarrier) {
			in := entering(t.Context(), a)
			mustEnter(t, dead.DoubleBarrier)
			mustEnd(t, "Enter", in, nil)
			left := leaving(t.Context(), dead.DoubleBarrier)
			dead.crash()
			time.Sleep(time.Minute)
			mustEnd(t, "Leave after a loss", left, zksync.ErrLost)
			mustLeave(t, a)
		},
		"before it clears the barrier": func(t *testing.T, srv *zksynctest.Server, dead *mortal, a, b *zksync.DoubleBarrier) {
			in := entering(t.Context(), a)
			mustEnter(t, dead.DoubleBarrier)
			mustEnd(t, "Enter", in, nil)
			out := leaving(t.Context(), a)
			waiting := entering(t.Context(), b)
			dead.crashAt("/b/ready")
			left := leaving(t.Context(), dead.DoubleBarrier)
			time.Sleep(time.Minute)
			mustEnd(t, "Leave after a loss", left, zksync.ErrLost)
			mustEnd(t, "Leave", out, nil)
			mustEnter(t, a)
			mustEnd(t, "Enter", waiting, nil)
			out = leaving(t.Context(), a)
			mustLeave(t, b)
			mustEnd(t, "Leave", out, nil)
		},
		// Then the next participants clear it.
		"with everybody inside": func(t *testing.T, srv *zksynctest.Server, dead *mortal, a, b *zksync.DoubleBarrier) {
			alone := zksync.NewDoubleBarrier(dead.m, "/b", 1)
			mustEnter(t, alone)
			dead.crash()
			time.Sleep(time.Minute)
			if left, _ := srv.Children("/b"); len(left) != 1 {
				t.Errorf("%v are there, want ready", left)
			}
			wholeRound(t, srv, a, b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				test(t, srv, newMortal(t, srv, 4*time.Second), double(t, srv, 2), double(t, srv, 2))
				wantEmpty(t, srv)
				wholeRound(t, srv, double(t, srv, 2), double(t, srv, 2))
			})
		})
	}
}

// A participant whose session is lost while it waits joins again and is counted once, even if the server still has its
// old znode.
func TestDoubleBarrierJoinsAgainAfterALoss(t *testing.T) {
	for _, id := range []string{"", "a"} {
		for _, remains := range []bool{false, true} {
			t.Run(fmt.Sprintf("id=%q, child remains=%v", id, remains), func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					m := srv.Connect(t)
					var opts []zksync.DoubleBarrierOption
					if id != "" {
						opts = append(opts, zksync.WithID(id))
					}
					a, b := zksync.NewDoubleBarrier(m, "/b", 2, opts...), double(t, srv, 2)
					in := entering(t.Context(), a)
					if remains {
						srv.DelayEphemeralRemoval(time.Hour)
					}
					if err := srv.ExpireSession(live(t, m).ID()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					pending(t, "Enter of one who was lost", in)
					if left, _ := srv.Children("/b"); len(left) != 1 {
						t.Errorf("%v are there, want one", left)
					}
					mustEnter(t, b)
					mustEnd(t, "Enter", in, nil)
					out := leaving(t.Context(), a)
					mustLeave(t, b)
					mustEnd(t, "Leave", out, nil)
					wholeRound(t, srv, a, b)
				})
			})
		}
	}
}

// A crash during a disconnect is noticed at the reconnect.
func TestDoubleBarrierLooksAgainAfterAReconnect(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		dead, waits := srv.Connect(t), srv.Connect(t)
		a, b := zksync.NewDoubleBarrier(dead, "/b", 2), zksync.NewDoubleBarrier(waits, "/b", 2)
		in := entering(t.Context(), a)
		mustEnter(t, b)
		mustEnd(t, "Enter", in, nil)
		out := leaving(t.Context(), b)
		start := time.Now()
		if err := srv.ExpireSession(live(t, dead).ID()); err != nil {
			t.Fatal(err)
		}
		pending(t, "Leave", out)
		if err := srv.Disconnect(live(t, waits).ID()); err != nil {
			t.Fatal(err)
		}
		mustEnd(t, "Leave", out, nil)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Enter and Leave fail with ErrClosed when the Manager is closed, and the other participants go on.
func TestDoubleBarrierManagerClosed(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		a, b, c := zksync.NewDoubleBarrier(m, "/b", 2), double(t, srv, 2), double(t, srv, 2)
		waiting := zksync.NewDoubleBarrier(m, "/b", 2)
		in := entering(t.Context(), a)
		mustEnter(t, b)
		mustEnd(t, "Enter", in, nil)
		late := entering(t.Context(), waiting)
		start := time.Now()
		m.Close()
		if took := time.Since(start); took > time.Second {
			t.Errorf("Close took %v", took)
		}
		mustEnd(t, "Enter", late, zksync.ErrClosed)
		if err := a.Leave(t.Context()); !errors.Is(err, zksync.ErrClosed) || !errors.Is(err, zksync.ErrLost) {
			t.Errorf("Leave after Close: %v", err)
		}
		if err := a.Enter(t.Context()); !errors.Is(err, zksync.ErrClosed) {
			t.Errorf("Enter after Close: %v", err)
		}
		mustLeave(t, b)
		wholeRound(t, srv, b, c)
	})
}

// Enter and Leave of a participant whose znode another client deleted fail with ErrLost.
func TestDoubleBarrierZnodeRemovedByForce(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		a, b := double(t, srv, 2), double(t, srv, 2)
		kick := func() {
			t.Helper()
			children, _ := srv.Children("/b")
			for _, name := range children {
				if name != "ready" {
					if err := srv.Delete("/b/" + name); err != nil {
						t.Error(err)
					}
				}
			}
		}
		in := entering(t.Context(), a)
		kick()
		mustEnd(t, "Enter", in, zksync.ErrLost)
		wholeRound(t, srv, a, b)
		in = entering(t.Context(), a)
		mustEnter(t, b)
		mustEnd(t, "Enter", in, nil)
		kick()
		for _, one := range []*zksync.DoubleBarrier{a, b} {
			if err := one.Leave(t.Context()); !errors.Is(err, zksync.ErrLost) {
				t.Errorf("Leave: %v", err)
			}
		}
		wholeRound(t, srv, a, b)
	})
}
