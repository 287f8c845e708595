package zksync_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// shown returns the parts of contenders that a test compares.
func shown(all []zksync.Contender) string {
	var b []string
	for _, c := range all {
		state := "waits"
		if c.Holds {
			state = "holds"
		}
		b = append(b, fmt.Sprintf("%s %v %s", c.ID, c.Class, state))
	}
	return strings.Join(b, ", ")
}

// wantContenders waits until the contenders are as wanted, and returns them.
func wantContenders(t *testing.T, list func() ([]zksync.Contender, error), want string) []zksync.Contender {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		all, err := list()
		must(t, err)
		if shown(all) == want {
			return all
		}
		if time.Now().After(deadline) {
			t.Fatalf("contenders: %s; want %s", shown(all), want)
		}
		time.Sleep(time.Millisecond)
	}
}

// Contenders names every contender in line by its ID, class, session, token and age,
// in order, and reports which of them hold. To see this test fail, write no data to the
// znodes of a line, or leave Holds to the first contender alone.
func TestContenders(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		dir := servers.Path(t)
		a, b, c := srv.Connect(t), srv.Connect(t), srv.Connect(t)
		id := func(name string) zksync.IDOption { return zksync.WithID(name) }
		ctx := t.Context()
		background := func(f func() error) <-chan error {
			done := make(chan error, 1)
			go func() { done <- f() }()
			return done
		}
		t.Run("Mutex", func(t *testing.T) {
			path := dir + "/mutex"
			first, second := zksync.NewMutex(a, path, id("a")), zksync.NewMutex(b, path, id("b"))
			list := func() ([]zksync.Contender, error) { return zksync.NewMutex(c, path).Contenders(ctx) }
			wantContenders(t, list, "")
			begun := time.Now()
			held, token := hold(t, first)
			waiting := background(func() error { return second.Lock(ctx) })
			all := wantContenders(t, list, "a exclusive holds, b exclusive waits")
			if got := all[0]; got.Token != token || got.Session != live(t, a).ID() || got.Since.Sub(begun).Abs() > 10*time.Second {
				t.Errorf("the holder is %+v; its token is %d, its session %#x", got, token, live(t, a).ID())
			}
			if all[1].Token <= token || all[1].Session != live(t, b).ID() {
				t.Errorf("the second in line is %+v", all[1])
			}
			if got, want := all[0].String(), fmt.Sprintf("a (session %#x, token %d)", uint64(live(t, a).ID()), token); got != want {
				t.Errorf("the holder is printed as %q, want %q", got, want)
			}
			must(t, live(t, c).Delete(ctx, all[0].Path, -1))
			must(t, <-waiting)
			if held.Err() == nil {
				_ = ended(t, held, 10*time.Second)
			}
			wantContenders(t, list, "b exclusive holds")
			_ = first.Unlock()
			must(t, second.Unlock())
		})
		t.Run("RWMutex", func(t *testing.T) {
			path := dir + "/rw"
			r1, r2, w := zksync.NewRWMutex(a, path, id("r1")), zksync.NewRWMutex(b, path, id("r2")), zksync.NewRWMutex(c, path, id("w"))
			list := func() ([]zksync.Contender, error) { return w.Contenders(ctx) }
			must(t, r1.RLock(ctx))
			must(t, r2.RLock(ctx))
			waiting := background(func() error { return w.Lock(ctx) })
			wantContenders(t, list, "r1 reader holds, r2 reader holds, w writer waits")
			late := zksync.NewRWMutex(a, path, id("r3"))
			reading := background(func() error { return late.RLock(ctx) })
			wantContenders(t, list, "r1 reader holds, r2 reader holds, w writer waits, r3 reader waits")
			must(t, r1.RUnlock())
			must(t, r2.RUnlock())
			must(t, <-waiting)
			wantContenders(t, list, "w writer holds, r3 reader waits")
			must(t, w.Downgrade(ctx))
			must(t, <-reading)
			wantContenders(t, list, "w reader holds, r3 reader holds")
			must(t, w.RUnlock())
			must(t, late.RUnlock())
		})
		for _, layout := range []zksync.Layout{zksync.LayoutCurator, zksync.LayoutKazoo} {
			t.Run("Semaphore "+layout.String(), func(t *testing.T) {
				path := dir + "/sem" + layout.String()
				of := func(m *session.Manager, name string) *zksync.Semaphore {
					return zksync.NewSemaphore(m, path, 3, id(name), zksync.WithLayout(layout))
				}
				first, second := of(a, "a"), of(b, "b")
				list := func() ([]zksync.Contender, error) { return of(c, "c").Contenders(ctx) }
				must(t, first.Acquire(ctx, 2))
				waiting := background(func() error { return second.Acquire(ctx, 2) })
				wantContenders(t, list, "a unit holds, a unit holds, b exclusive waits")
				must(t, first.Release(2))
				must(t, <-waiting)
				wantContenders(t, list, "b unit holds, b unit holds")
				must(t, second.Release(2))
			})
		}
		for _, layout := range []zksync.Layout{zksync.LayoutCurator, zksync.LayoutEphemeral} {
			t.Run("Election "+layout.String(), func(t *testing.T) {
				path := dir + "/election" + layout.String()
				first := zksync.NewElection(a, path, id("a"), zksync.WithLayout(layout))
				_, err := first.Campaign(ctx)
				must(t, err)
				wantContenders(t, func() ([]zksync.Contender, error) { return first.Contenders(ctx) }, "a exclusive holds")
				must(t, first.Resign())
			})
		}
	})
}

// A contender without WithID is identified by the host and the process, and a line of
// another client's contenders shows what these have written.
func TestContendersOfOtherClients(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		m := srv.Connect(t)
		s := live(t, m)
		must(t, s.MakeDir(t.Context(), path))
		_, err := s.CreateProtected(t.Context(), path+"/lock-", []byte("10.0.0.7"), 3)
		must(t, err)
		mu := zksync.NewMutex(m, path)
		all := wantContenders(t, func() ([]zksync.Contender, error) { return mu.Contenders(t.Context()) }, "10.0.0.7 exclusive holds")
		must(t, s.Delete(t.Context(), all[0].Path, -1))
		must(t, mu.Lock(t.Context()))
		all, err = mu.Contenders(t.Context())
		must(t, err)
		if len(all) != 1 || !strings.Contains(all[0].ID, ":") {
			t.Errorf("contenders %+v, want one with an ID as host:pid", all)
		}
		must(t, mu.Unlock())
		_, err = zksync.NewMutex(m, "relative").Contenders(t.Context())
		mustBe(t, err, session.ErrInvalidPath, "contenders", "relative")
	})
}
