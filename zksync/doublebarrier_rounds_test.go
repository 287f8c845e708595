package zksync_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A cohort takes participants through rounds on one path, without a pause
// between them, and checks that no participant passes before all have come.
type cohort struct {
	path     string
	managers []*session.Manager
	rounds   int
	drop     func(t *testing.T, m *session.Manager) // breaks a connection in every tenth round, if not nil

	mu   sync.Mutex
	came []int // by round: how many have called Enter
	went []int // and Leave
}

// A moment in the course of a round.
const (
	dropBeforeEnter = iota
	dropInside
	dropBeforeLeave
	dropMoments
)

func (c *cohort) run(t *testing.T, seed uint64) {
	n := len(c.managers)
	c.came, c.went = make([]int, c.rounds), make([]int, c.rounds)
	var wg sync.WaitGroup
	for i, m := range c.managers {
		b := zksync.NewDoubleBarrier(m, c.path, n)
		wg.Go(func() {
			for round := range c.rounds {
				// Everybody draws the same, so one of them does it.
				rnd := rand.New(rand.NewPCG(seed, uint64(round)))
				victim, by, when := c.managers[rnd.IntN(n)], rnd.IntN(n), rnd.IntN(dropMoments)
				at := func(moment int) {
					if c.drop != nil && round%10 == 0 && i == by && moment == when {
						c.drop(t, victim)
					}
				}
				at(dropBeforeEnter)
				c.note(c.came, round)
				if err := b.Enter(t.Context()); err != nil {
					t.Errorf("round %d: %v", round, err)
					return
				}
				at(dropInside)
				c.check(t, round, c.came, "entered")
				at(dropBeforeLeave)
				c.note(c.went, round)
				if err := b.Leave(t.Context()); err != nil {
					t.Errorf("round %d: %v", round, err)
					return
				}
				c.check(t, round, c.went, "left")
			}
		})
	}
	wg.Wait()
}

func (c *cohort) note(did []int, round int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	did[round]++
}

func (c *cohort) check(t *testing.T, round int, did []int, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if did[round] != len(c.managers) {
		t.Errorf("somebody %s in round %d after %d of %d", what, round, did[round], len(c.managers))
	}
}

// Rounds with lost connections never mix: no participant enters early or is left behind.
func TestDoubleBarrierRoundsDoNotMix(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		c := &cohort{path: "/app/barrier", rounds: bounds.Size(200, 1000) / slowdown, drop: func(t *testing.T, m *session.Manager) {
			if err := srv.Disconnect(live(t, m).ID()); err != nil {
				t.Error(err)
			}
		}}
		for range 16 {
			c.managers = append(c.managers, srv.Connect(t))
		}
		c.run(t, 1)
		if names, ok := srv.Children("/app/barrier"); !ok || len(names) > 0 {
			t.Errorf("left behind: %v", names)
		}
	})
}

// Rounds with lost connections never mix on the embedded server and on a real one.
func TestDoubleBarrierRoundsOnBothServers(t *testing.T) {
	t.Parallel()
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		t.Parallel()
		c := &cohort{path: servers.Path(t), rounds: bounds.Size(100, 200), drop: func(t *testing.T, m *session.Manager) {
			srv.Disconnect(t, live(t, m).ID())
		}}
		for range 16 {
			c.managers = append(c.managers, srv.Connect(t))
		}
		c.run(t, 2)
		names, _, err := live(t, c.managers[0]).Children(t.Context(), c.path)
		if err != nil || len(names) > 0 {
			t.Errorf("left behind: %v, error %v", names, err)
		}
	})
}

// enterAndLeave takes n participants over the sessions through one round, and
// returns the bytes that each session has sent and received for it.
func enterAndLeave(t *testing.T, srv *zksynctest.Server, managers []*session.Manager, n int) (bytes []int64) {
	var all []*zksync.DoubleBarrier
	for i := range n {
		all = append(all, zksync.NewDoubleBarrier(managers[i%len(managers)], "/b", n))
	}
	traffic := func() (now []int64) {
		for _, m := range managers {
			traffic := srv.Traffic(live(t, m).ID())
			now = append(now, traffic.BytesIn+traffic.BytesOut)
		}
		return now
	}
	before := traffic()
	each := func(do func(*zksync.DoubleBarrier) error) {
		var wg sync.WaitGroup
		for _, b := range all {
			wg.Go(func() {
				if err := do(b); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	each(func(b *zksync.DoubleBarrier) error { return b.Enter(t.Context()) })
	each(func(b *zksync.DoubleBarrier) error { return b.Leave(t.Context()) })
	synctest.Wait()
	for i, now := range traffic() {
		bytes = append(bytes, now-before[i])
	}
	return bytes
}

// The bytes that a participant transfers do not grow with n.
func TestDoubleBarrierBytesDoNotGrowWithItsSize(t *testing.T) {
	const sessions = 20
	measure := func(t *testing.T, n int) (each, whole float64) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			if err := srv.Create("/b", nil); err != nil {
				t.Fatal(err)
			}
			var managers []*session.Manager
			for range min(n, sessions) {
				managers = append(managers, srv.Connect(t))
			}
			bytes := enterAndLeave(t, srv, managers, n)
			least := bytes[0]
			var sum int64
			for _, b := range bytes {
				least = min(least, b)
				sum += b
			}
			// Some session lists nothing: its share is the share of a participant that comes, waits, goes and waits.
			each = float64(least) / float64(n/len(managers))
			whole = float64(sum) / float64(n)
		})
		t.Logf("n = %d: %.0f bytes a participant, %.0f with what the last one reads and clears", n, each, whole)
		return each, whole
	}
	smallEach, smallWhole := measure(t, 10)
	for _, n := range []int{100, 1000} {
		largeEach, largeWhole := measure(t, n)
		if largeEach > smallEach || largeWhole > smallWhole {
			t.Errorf("a participant of %d costs %.0f bytes (%.0f), one of 10 costs %.0f (%.0f)",
				n, largeEach, largeWhole, smallEach, smallWhole)
		}
	}
}

// A participant that waits makes five requests in a round.
func TestDoubleBarrierTakesFiveRequests(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		first, last := srv.Connect(t), srv.Connect(t)
		a := zksync.NewDoubleBarrier(first, "/b", 2)
		b := zksync.NewDoubleBarrier(last, "/b", 2)
		for round := range 2 {
			srv.ResetOps()
			in := entering(t.Context(), a)
			mustEnter(t, b)
			if err := <-in; err != nil {
				t.Fatal(err)
			}
			out := leaving(t.Context(), a)
			mustLeave(t, b)
			if err := <-out; err != nil {
				t.Fatal(err)
			}
			if round == 0 {
				continue // they see what the directory is
			}
			if got, want := names(requests(srv, live(t, first).ID())), "exists multi exists getData multi"; got != want {
				t.Errorf("one who waits asks %q, want %q", got, want)
			}
			if got, want := names(requests(srv, live(t, last).ID())), "exists multi getChildren2 multi multi multi"; got != want {
				t.Errorf("the last one asks %q, want %q", got, want)
			}
			for _, op := range requests(srv) {
				if op.Code == zkserver.OpMulti && op.Sub[len(op.Sub)-1].Code != zkserver.OpSetData {
					t.Errorf("%+v does not add to the version of the directory", op)
				}
			}
		}
	})
}
