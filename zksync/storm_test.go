package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// stormRuns is how many seeds a storm tries: one, or three with ZKSYNC_LONG=1 and
// without the race detector, or as many as ZKSYNC_STORM_RUNS says.
func stormRuns(t *testing.T) int {
	if v := os.Getenv("ZKSYNC_STORM_RUNS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal("ZKSYNC_STORM_RUNS:", err)
		}
		return n
	}
	return max(1, bounds.Size(1, 3)/slowdown)
}

// At any time at most one goroutine of all processes holds the lock, and tokens grow, while connections drop, sessions
// expire and replies get lost. 50 goroutines contend over 5 sessions.
func TestStorm(t *testing.T) {
	for seed := range stormRuns(t) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) { storm(t, srv, rand.New(rand.NewPCG(uint64(seed), 1))) })
		})
	}
}

func storm(t *testing.T, srv *zksynctest.Server, rng *rand.Rand) {
	const sessions, goroutines, faults = 5, 50, 40
	w := &witness{t: t, shared: true, grace: 2 * time.Second}
	ctx, cancel := context.WithCancel(t.Context())
	var ms []*session.Manager
	var wg sync.WaitGroup
	for i := range sessions {
		m := srv.Connect(t)
		ms = append(ms, m)
		var opts []zksync.MutexOption
		if rng.IntN(3) == 0 {
			opts = append(opts, zksync.WithLinger(time.Duration(rng.IntN(50))*time.Millisecond))
		}
		shared := zksync.NewMutex(m, path, opts...)
		for g := range goroutines / sessions {
			mu := shared
			if g%2 == 0 {
				mu = zksync.NewMutex(m, path, opts...)
			}
			r := rand.New(rand.NewPCG(rng.Uint64(), 2))
			wg.Go(func() { stormWorker(ctx, t, fmt.Sprintf("%d.%d", i, g), mu, w, r) })
		}
	}
	unreachable := make(map[int64]time.Time)
	for range faults {
		time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
		t.Logf("%v: %s", time.Now().Format("05.000"), strike(srv, w, rng, unreachable))
	}
	time.Sleep(30 * time.Second)
	before := w.count()
	time.Sleep(time.Minute)
	if w.count() == before {
		t.Error("nobody has held the lock for a minute after the storm")
	}
	cancel()
	wg.Wait()
	time.Sleep(30 * time.Second)
	wantInLine(t, srv, 0)
	for _, m := range ms {
		warm(t, zksync.NewMutex(m, path))
	}
}

func (w *witness) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.passed
}

func stormWorker(ctx context.Context, t *testing.T, who string, mu *zksync.Mutex, w *witness, r *rand.Rand) {
	for ctx.Err() == nil {
		wait, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(20_000))*time.Millisecond)
		held, err := mu.LockContext(wait)
		if err == nil {
			w.hold(who, held, time.Duration(r.IntN(200))*time.Millisecond)
			err = w.unlock(mu, held)
		}
		cancel()
		if err != nil && !errors.Is(err, zksync.ErrLost) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			t.Error(who, err)
		}
		time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
	}
}

// strike does something bad to one of the sessions. It ends none by force that
// may be out of reach: no client can know of that before its lease runs out.
func strike(srv *zksynctest.Server, w *witness, rng *rand.Rand, unreachable map[int64]time.Time) string {
	live := srv.Sessions()
	if len(live) == 0 {
		return "nobody there"
	}
	id := live[rng.IntN(len(live))].ID
	action := rng.IntN(8)
	if action == 0 && time.Now().After(unreachable[id]) {
		w.force()
		srv.ExpireSession(id)
		return fmt.Sprintf("expired %x", id)
	}
	unreachable[id] = time.Now().Add(time.Minute)
	length := time.Duration(rng.IntN(15_000)) * time.Millisecond
	switch action {
	case 1:
		srv.Disconnect(id)
		return fmt.Sprintf("disconnected %x", id)
	case 2:
		srv.Partition(id)
		time.AfterFunc(length, func() { srv.Heal(id) })
		return fmt.Sprintf("partitioned %x for %v", id, length)
	case 3:
		srv.Lag(id)
		srv.Disconnect(id)
		return fmt.Sprintf("sent %x to a server that lags", id)
	case 4:
		srv.CutFromLeader(id, true)
		time.AfterFunc(length, func() { srv.CutFromLeader(id, false) })
		return fmt.Sprintf("cut the server of %x from its leader for %v", id, length)
	}
	f := zksynctest.Fault{
		Session: id, Nth: rng.IntN(4),
		At: []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply, zksynctest.OnWatch}[rng.IntN(4)],
		Do: []zksynctest.Action{zksynctest.Disconnect, zksynctest.Delay(time.Duration(rng.IntN(3000)) * time.Millisecond)}[rng.IntN(2)],
	}
	srv.Inject(f)
	return fmt.Sprintf("%v %v for %x", f.Do, f.At, id)
}
