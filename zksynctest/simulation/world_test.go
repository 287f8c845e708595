package simulation_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/simulation/network"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A workload defines the actions of the clients of a simulation. start opens the
// primitives that the clients use, and returns the function that carries out one
// action of one client.
type workload struct {
	name  string
	start func(w *world) func(c *simClient, a action) error
	small bool // few clients
	crowd bool // many clients, and few Managers
	// Faults that are drawn more often than in other workloads, because this workload is sensitive
	// to them:
	mishaps []faultKind
	aims    []network.Strike // the most relevant requests
	losses  []network.Strike // requests whose loss, or whose answer's loss, does the most harm
}

// A world is one run of a plan, in a bubble.
type world struct {
	plan     *plan
	srv      *zkserver.Server
	net      *network.Net
	managers []*session.Manager
	clients  []*simClient
	objects  []*object
	dirs     []string // must be empty in the end
	atRest   []func() // run when all clients are done and the faults have ended
	probes   []func(ctx context.Context) error
	closers  []func()                                  // run before the Managers are closed
	finish   []func()                                  // run when the Managers are closed, while the server still runs
	helpers  []func(ctx context.Context, c *simClient) // run until all clients are done
	begun    time.Time

	mu       sync.Mutex
	wrong    []string
	said     []string
	holdings map[*holding]struct{}
	asleep   map[int]time.Time // by Manager: end of the suspension of its process
	newest   map[int]*session.Session
	progress int // actions that have succeeded
	lost     int // holds
}

// An outcome is the result of a run.
type outcome struct {
	wrong    []string // empty if the run has passed
	hash     uint64
	frames   int
	progress int
	lost     int
	took     time.Duration // of the bubble's time

	// For the report of a failure:
	said    []string
	begun   time.Time
	ops     []zksynctest.Op
	dump    string
	objects []*object
}

// simulate runs a plan, and checks the histories of the run.
func simulate(t *testing.T, p *plan) (out *outcome) {
	w := &world{plan: p, holdings: make(map[*holding]struct{}), asleep: make(map[int]time.Time), newest: make(map[int]*session.Session)}
	out = &outcome{}
	bounds.Run(fmt.Sprintf("seed %d of %s", p.seed, p.workload.name), func() {
		defer func() {
			if r := recover(); r != nil { // the bubble's panic if goroutines are left
				w.fail("%v", r)
			}
		}()
		synctest.Test(t, func(t *testing.T) { w.run(out) })
	})
	out.wrong = append(out.wrong, w.wrong...)
	out.begun, out.said, out.objects, out.progress, out.lost = w.begun, w.said, w.objects, w.progress, w.lost
	if len(out.wrong) == 0 {
		for _, o := range w.objects {
			out.wrong = append(out.wrong, o.verdict()...)
		}
	}
	return out
}

// patienceInCalm is the time, in session timeouts, that the clients may take to finish their
// actions after the faults.
const patienceInCalm = 150

func (w *world) run(out *outcome) {
	w.begun = time.Now()
	cfg := zkserver.Config{TickTime: w.plan.tick, ElectionTime: w.plan.timeout() / 18, ReapInterval: w.plan.reap, EnforceQuota: true}
	if f := w.plan.setting.server; f != nil {
		f(&cfg)
	}
	srv, err := zkserver.NewEnsemble(cfg, endpoints)
	if err != nil {
		w.fail("start the server: %v", err)
		return
	}
	w.srv = srv
	w.net = network.New(network.Random(w.plan.seed), w.plan.managers+1)
	go w.net.Run()
	defer func() {
		for _, f := range w.finish {
			f()
		}
		out.hash, out.frames = w.net.Fingerprint()
		out.ops, out.dump, out.took = w.srv.Ops(), w.srv.Dump(), time.Since(w.begun)
		w.net.Close()
		w.srv.Close()
	}()
	if f := w.plan.setting.begin; f != nil {
		f(w)
	}
	if !w.connect() {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	do := w.plan.workload.start(w)
	var clients, others sync.WaitGroup
	for i, actions := range w.plan.clients {
		c := &simClient{w: w, number: i, manager: i % w.plan.managers, m: w.managers[i%w.plan.managers]}
		w.clients = append(w.clients, c)
		clients.Go(func() { c.run(ctx, actions, do) })
	}
	monitoring, stop := context.WithCancel(ctx)
	others.Go(func() { w.monitor(monitoring) })
	for i, f := range w.helpers {
		others.Go(func() { f(monitoring, &simClient{w: w, number: len(w.plan.clients) + i}) })
	}
	faults := make(chan struct{})
	go func() { defer close(faults); w.misbehave() }()
	patience := w.plan.calm() + patienceInCalm*w.plan.timeout()
	finished := w.within("the clients have not done all they have to", patience, clients.Wait) &&
		w.within("the faults have not ended", patience, func() { <-faults })
	if finished {
		time.Sleep(3 * w.plan.timeout())
		for _, f := range w.atRest {
			f()
		}
	}
	stop()
	finished = w.within("a helper has not ended", patience, others.Wait) && finished
	if finished && !w.failed() {
		time.Sleep(3 * w.plan.timeout())
		w.inspect(ctx)
	}
	cancel()
	w.close(clients.Wait)
}

// maxFrames is a bound that no plan should reach.
const maxFrames = 200_000

// within runs wait, and records a failure if it does not return in time.
func (w *world) within(what string, patience time.Duration, wait func()) bool {
	done := make(chan struct{})
	go func() { wait(); close(done) }()
	look := time.NewTicker(w.plan.timeout())
	defer look.Stop()
	for end := time.Now().Add(patience); ; {
		select {
		case <-done:
			return true
		case <-look.C:
		}
		_, frames := w.net.Fingerprint()
		if time.Now().After(end) || frames > maxFrames {
			w.fail("stuck: %s within %v and %d frames", what, patience, frames)
			return false
		}
	}
}

const endpoints = 3

// dialer returns the dialer of a Manager. A Manager tries servers in an order that differs from run
// to run. To make runs repeatable, the dialer maps the first address that the Manager dials to the
// first server of an order that the seed decides, and so on.
func (w *world) dialer(manager int, order []int) session.DialFunc {
	known := map[string]int{}
	return w.net.Dialer(manager, func(ctx context.Context, address string) (net.Conn, error) {
		i, ok := known[address]
		if !ok {
			i = order[len(known)]
			known[address] = i
		}
		return w.srv.Endpoint(1+i).Dial(ctx, "tcp", address)
	})
}

// connect opens the sessions, one after the other.
func (w *world) connect() bool {
	r := w.plan.rnd(forEndpoints)
	for i := range w.plan.managers {
		w.net.SetDistance(i, w.plan.distance[i])
		dial := w.dialer(i, r.Perm(endpoints))
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		opts := []session.Option{session.WithDialer(dial), session.WithTimeout(w.plan.timeout())}
		if f := w.plan.setting.options; f != nil {
			opts = append(opts, f(w.plan, i)...)
		}
		m, err := session.Connect(ctx, "10.0.0.1,10.0.0.2,10.0.0.3", opts...)
		cancel()
		if err != nil {
			w.fail("connect: %v", err)
			return false
		}
		w.managers = append(w.managers, m)
		time.Sleep(upTo(r, 10*time.Millisecond))
	}
	return true
}

// inspect checks that nothing is left behind, after all clients are done and the network is healed.
func (w *world) inspect(ctx context.Context) {
	for _, f := range w.closers {
		if !w.within("what is used cannot be closed", 10*w.plan.timeout(), f) {
			return
		}
	}
	for _, probe := range w.probes {
		patience, cancel := context.WithTimeout(ctx, w.plan.timeout())
		if err := probe(patience); err != nil {
			w.fail("in the end: %v", err)
		}
		cancel()
	}
	time.Sleep(w.plan.timeout())
	for _, dir := range w.dirs {
		if names, _ := w.srv.Children(dir); len(names) > 0 {
			slices.Sort(names)
			w.fail("left behind in %s: %v", dir, names)
		}
	}
	for i, m := range w.managers {
		s := w.sessionOf(i)
		if s == nil {
			w.fail("Manager %d has no session", i)
			continue
		}
		w.inspectWatches(i, m, s.ID())
	}
}

// inspectWatches compares the watches of a Manager with the watches that the server has of its session.
func (w *world) inspectWatches(i int, m *session.Manager, id int64) {
	// The server may just have reaped a container, and the event is on its way.
	const attempts = 3
	for attempt := 1; ; attempt++ {
		st, n := m.Stats(), w.srv.WatchesOf(id)
		if n == st.Watches && st.IdleWatches == st.Watches {
			return
		}
		if attempt == attempts {
			w.fail("the server has %d watches of Manager %d, which knows %d; calls wait for %d of them", n, i, st.Watches, st.Watches-st.IdleWatches)
			return
		}
		time.Sleep(time.Second)
	}
}

// close closes the clients' side and checks that nothing of it is left.
func (w *world) close(clients func()) {
	var wg sync.WaitGroup
	for _, m := range w.managers {
		wg.Go(func() { m.Close() })
	}
	if !w.within("Close has not returned", 10*w.plan.timeout(), wg.Wait) ||
		!w.within("clients go on after Close", 10*w.plan.timeout(), clients) {
		return
	}
	if w.failed() {
		return
	}
	time.Sleep(3 * w.plan.timeout()) // sessions that could not be closed
	for _, s := range w.srv.Sessions() {
		w.fail("session %#x is still there", s.ID)
	}
	if n := w.srv.Watches(); n > 0 {
		w.fail("%d watches are left", n)
	}
}

func (w *world) sessionOf(manager int) *session.Session {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if w.managers[manager].State() != session.Connected {
		return nil
	}
	time.AfterFunc(time.Nanosecond, cancel)
	s, err := w.managers[manager].Session(ctx)
	if err != nil {
		return nil
	}
	return s
}

// lastSession returns the Manager's session when it was last connected.
func (w *world) lastSession(manager int) *session.Session {
	s := w.sessionOf(manager)
	w.mu.Lock()
	defer w.mu.Unlock()
	if s != nil {
		w.newest[manager] = s
	}
	return w.newest[manager]
}

// helper registers f to run until all clients are done.
func (w *world) helper(f func(ctx context.Context, c *simClient)) { w.helpers = append(w.helpers, f) }

// fail records a failure. Later failures often follow from the first failure.
func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wrong) < 10 {
		w.wrong = append(w.wrong, w.stamp()+fmt.Sprintf(format, args...))
	}
}

// say records an event for the report of a failure.
func (w *world) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, w.stamp()+fmt.Sprintf(format, args...))
}

func (w *world) stamp() string {
	return fmt.Sprintf("%10.6f: ", time.Since(w.begun).Seconds())
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.wrong) > 0
}

// lines joins the lines of a list in a report.
func lines(all []string) string { return "  " + strings.Join(all, "\n  ") }
