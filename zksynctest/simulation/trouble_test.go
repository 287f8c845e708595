package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A trouble breaks connections and ends sessions during a history.
type trouble struct {
	srv      servers.Server     // of either kind
	embedded *zksynctest.Server // nil for a real server
	managers []*session.Manager
	h        *history
}

// make applies a random fault to a random session.
func (tr trouble) make(t *testing.T, rnd *rand.Rand) {
	i := rnd.IntN(len(tr.managers))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	s, err := tr.managers[i].Session(ctx)
	if err != nil {
		return
	}
	what := rnd.IntN(3)
	if tr.embedded != nil {
		what = rnd.IntN(6)
	}
	switch what {
	case 0:
		tr.h.breaks(i, s)
		tr.srv.Expire(t, s.ID())
	case 1, 2:
		tr.srv.Disconnect(t, s.ID())
	case 3: // no frame passes for longer than the session timeout
		tr.embedded.Partition(s.ID())
		time.Sleep(time.Duration(rnd.IntN(20)) * time.Second)
		tr.embedded.Heal(s.ID())
	case 4, 5:
		moments := []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply, zksynctest.OnWatch}
		f := zksynctest.Fault{Session: s.ID(), At: moments[rnd.IntN(len(moments))], Nth: rnd.IntN(3), Do: zksynctest.Disconnect}
		if f.At != zksynctest.OnWatch && rnd.IntN(2) == 0 {
			f.Op = zkserver.OpMulti
		}
		switch rnd.IntN(3) {
		case 0:
			f.Do = zksynctest.Drop
		case 1:
			f.Do = zksynctest.Delay(time.Duration(rnd.IntN(4000)) * time.Millisecond)
		}
		tr.embedded.Inject(f)
	}
}

type bubbled struct{ *zksynctest.Server }

func (b bubbled) Address() string { return zksynctest.InMemory }

func (b bubbled) Disconnect(tb testing.TB, id int64) { b.Server.Disconnect(id) }

func (b bubbled) Expire(tb testing.TB, id int64) { b.ExpireSession(id) }

// A troubled runs clients against srv, in time that runs faster by the factor pace, and returns
// when all clients have returned.
type troubled func(t *testing.T, seed uint64, tr trouble, path string, pace time.Duration)

// everywhere runs a workload with faults on zkserver, in bubbles, for many seeds, and on both kinds
// of servers in real time for one seed.
func (run troubled) everywhere(t *testing.T, seeds uint64) {
	for seed := range seeds {
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				srv := zksynctest.Start(t)
				run(t, seed, newTrouble(t, bubbled{srv}, srv), "/x", time.Second)
			})
		}) {
			break
		}
	}
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		run(t, 1, newTrouble(t, srv, nil), servers.Path(t), 20*time.Millisecond)
	})
}

func newTrouble(t *testing.T, srv servers.Server, embedded *zksynctest.Server) trouble {
	tr := trouble{srv: srv, embedded: embedded, h: &history{}}
	for range 3 {
		tr.managers = append(tr.managers, srv.Connect(t))
	}
	return tr
}

// work makes nine clients perform eight actions each, some of them with little patience. Errors
// fail the test only while the patience lasts.
func (tr trouble) work(t *testing.T, seed uint64, pace time.Duration, do func(ctx context.Context, client, manager int, rnd *rand.Rand) error) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for client := range 9 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(client)))
			time.Sleep(time.Duration(rnd.Int64N(int64(pace))))
			for range 8 {
				ctx, cancel := context.WithCancel(t.Context())
				if rnd.IntN(5) == 0 {
					ctx, cancel = context.WithTimeout(ctx, time.Duration(rnd.Int64N(int64(3*pace))))
				}
				if err := do(ctx, client, client%len(tr.managers), rnd); err != nil && ctx.Err() == nil {
					t.Errorf("client %d: %v", client, err)
				}
				cancel()
			}
		})
	}
}

// with applies faults until clients returns, and then checks that the directories dirs are empty.
func (tr trouble) with(t *testing.T, seed uint64, pace time.Duration, clients func(), dirs ...string) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		rnd := rand.New(rand.NewPCG(seed, 99))
		for ctx.Err() == nil {
			tr.make(t, rnd)
			select {
			case <-time.After(time.Duration(rnd.Int64N(int64(6 * pace)))):
			case <-ctx.Done():
			}
		}
	})
	clients()
	cancel()
	wg.Wait()
	if tr.embedded != nil { // clients notice lost frames when the connection ends
		for _, s := range tr.embedded.Sessions() {
			tr.embedded.Disconnect(s.ID)
		}
	}
	m := tr.srv.Connect(t)
	for _, dir := range dirs {
		leftBehind(t, m, dir)
	}
}

// leftBehind fails the test if a directory does not become empty.
func leftBehind(t *testing.T, m *session.Manager, dir string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	s, err := m.Session(ctx)
	for err == nil {
		var names []string
		var changed <-chan zk.Event
		if names, _, changed, err = s.ChildrenW(ctx, dir); len(names) == 0 && (err == nil || errors.Is(err, zk.ErrNoNode)) {
			return
		}
		if err == nil {
			if ev := <-changed; ev.Err != nil {
				err = fmt.Errorf("%w, with %v left", ev.Err, names)
			}
		}
	}
	t.Errorf("%s has not emptied: %v", dir, err)
}
