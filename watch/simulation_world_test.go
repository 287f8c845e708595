package watch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	netsim "github.com/go-zksync/toolkit/zksynctest/simulation/network"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A simulation is one run of a seed: a Node, a Children and a Tree follow a subtree
// over one session after the other, while the subtree changes, and while connections,
// sessions and servers fail. The readers apply deliveries after pauses, so that the
// connection gets ahead of the readers.
type simulation struct {
	seed uint64
	rnd  *rand.Rand

	srv    *zkserver.Server
	net    *netsim.Net
	m      *session.Manager
	ctx    context.Context
	cancel context.CancelFunc
	truth  *truth
	begun  time.Time
	heal   []func()

	cache   *watch.Cache
	seen    map[string]*progress // in the tree
	replica *replica
	node    *nodeReader
	list    *listReader
	waits   sync.WaitGroup

	mu     sync.Mutex
	wrong  []string
	said   []string
	counts simCounts
}

const simTimeout = 10 * time.Second

func newSimulation(seed uint64) *simulation {
	return &simulation{seed: seed, rnd: rand.New(rand.NewPCG(seed, 0)), seen: make(map[string]*progress), replica: newReplica()}
}

// run runs the seed in a bubble.
func (sim *simulation) run(t *testing.T) {
	pauses := &pauser{rnd: rand.New(rand.NewPCG(sim.seed, 1)), often: sim.rnd.IntN(3), limit: time.Duration(1 + sim.rnd.IntN(int(30*time.Millisecond)))}
	defer watch.SetApplyHook(pauses.pause)()
	defer func() {
		if r := recover(); r != nil { // the bubble's, when goroutines are left
			sim.fail("%v", r)
		}
	}()
	bounds.Run(fmt.Sprintf("seed %d", sim.seed), func() {
		synctest.Test(t, func(t *testing.T) {
			defer sim.open()()
			sim.live()
			sim.end()
		})
	})
}

// A pauser sleeps now and then.
type pauser struct {
	mu    sync.Mutex
	rnd   *rand.Rand
	often int // in three
	limit time.Duration
}

func (p *pauser) pause() {
	p.mu.Lock()
	var d time.Duration
	if p.rnd.IntN(3) < p.often {
		d = upTo(p.rnd, p.limit)
	}
	p.mu.Unlock()
	if d > 0 {
		time.Sleep(d)
	}
}

// open starts the servers, the session and the readers.
func (sim *simulation) open() (closeAll func()) {
	sim.begun = time.Now()
	srv, err := zkserver.NewEnsemble(zkserver.Config{TickTime: time.Second, ElectionTime: time.Second / 3}, 3)
	if err != nil {
		panic(err)
	}
	sim.srv, sim.net = srv, netsim.New(netsim.Random(sim.seed), 1)
	go sim.net.Run()
	root := "/r"
	if sim.rnd.IntN(3) == 0 {
		// A request that arms watches again has room for a few of these only.
		root += strings.Repeat("x", 30_000)
	}
	sim.truth = newTruth(srv, root)
	sim.truth.heal = sim.healAll
	if sim.rnd.IntN(10) == 0 {
		sim.truth.wide = 100
	}
	order := sim.rnd.Perm(3)
	known := map[string]int{}
	dial := sim.net.Dialer(0, func(ctx context.Context, address string) (net.Conn, error) {
		if _, ok := known[address]; !ok {
			known[address] = order[len(known)]
		}
		return srv.Endpoint(1+known[address]).Dial(ctx, "tcp", address)
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if sim.m, err = session.Connect(ctx, "10.0.0.1,10.0.0.2,10.0.0.3", session.WithDialer(dial), session.WithTimeout(simTimeout)); err != nil {
		panic(err)
	}
	sim.ctx, sim.cancel = context.WithCancel(context.Background())
	for range sim.rnd.IntN(2 * sim.truth.wide) {
		sim.change()
	}
	sim.cache = watch.Tree(sim.ctx, sim.m, root)
	sim.node = sim.follow()
	sim.list = &listReader{stream: watch.Children(sim.ctx, sim.m, root), path: root}
	return func() {
		sim.m.Close()
		sim.net.Close()
		sim.srv.Close()
	}
}

// live takes the steps, and looks at everything after each.
func (sim *simulation) live() {
	for range 15 + sim.rnd.IntN(40) {
		sim.step()
		switch sim.rnd.IntN(6) {
		case 0:
		case 1:
			time.Sleep(upTo(sim.rnd, 300*time.Millisecond))
		default:
			time.Sleep(upTo(sim.rnd, 3*time.Millisecond))
		}
		sim.look()
	}
}

func (sim *simulation) step() {
	switch p := sim.rnd.IntN(40); {
	case p < 20:
		sim.change()
	case p < 22:
		for range sim.rnd.IntN(10) {
			sim.change()
		}
	case p < 24:
		sim.flicker()
	case p < 33:
		sim.misbehave()
	case p < 37:
		sim.waitSynced()
	case p < 38:
		sim.node.leave()
		sim.node = sim.follow()
	case p < 39:
		time.Sleep(upTo(sim.rnd, 2*simTimeout))
	default:
		sim.rest()
	}
}

// flicker deletes a leaf and creates it again, a few times, while the readers find
// out.
func (sim *simulation) flicker() {
	path := sim.truth.leaf(sim.rnd)
	if path == "" {
		return
	}
	for range 1 + sim.rnd.IntN(4) {
		for _, f := range []func(string) (string, error){sim.truth.remove, sim.truth.create} {
			sim.changed(f(path))
			if sim.rnd.IntN(3) > 0 {
				time.Sleep(upTo(sim.rnd, time.Millisecond))
			}
		}
	}
}

func (sim *simulation) change() { sim.changed(sim.truth.change(sim.rnd)) }

// changed notes a change that was made.
func (sim *simulation) changed(what string, err error) {
	if err != nil {
		panic(err)
	}
	sim.counts.changes++
	sim.say("%s", what)
}

// session is the id of the session in use, 0 if there is none.
func (sim *simulation) session() int64 {
	if sim.m.State() != session.Connected {
		return 0
	}
	ctx, cancel := context.WithTimeout(sim.ctx, time.Nanosecond)
	defer cancel()
	s, err := sim.m.Session(ctx)
	if err != nil {
		return 0
	}
	return s.ID()
}

// end ends the readers, and checks that they are gone.
func (sim *simulation) end() {
	sim.rest()
	sim.cancel()
	time.Sleep(time.Second)
	if err := sim.cache.Err(); !errors.Is(err, context.Canceled) {
		sim.fail("the Cache goes on, or has ended with %v", err)
	}
	if n := running(); n > 0 {
		sim.fail("%d goroutines are left", n)
	}
	time.Sleep(time.Minute)
	if n := sim.srv.Watches(); n > 64 {
		sim.fail("%d watches are left", n)
	}
}

func (sim *simulation) fail(format string, args ...any) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.wrong = append(sim.wrong, sim.stamp()+fmt.Sprintf(format, args...))
	sim.said = append(sim.said, sim.wrong[len(sim.wrong)-1])
}

func (sim *simulation) say(format string, args ...any) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.said = append(sim.said, sim.stamp()+fmt.Sprintf(format, args...))
}

func (sim *simulation) stamp() string {
	return fmt.Sprintf("%10.6f: ", time.Since(sim.begun).Seconds())
}
