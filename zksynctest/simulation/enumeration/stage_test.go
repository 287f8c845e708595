package enumeration_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/simulation/network"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const (
	ensemble = 3
	// latency is the time that each frame takes.
	latency = time.Millisecond
	// budget is the time within which every scenario ends, under any faults.
	budget = 40 * timeout
	// maxEvents is the number of frames after which a run counts as stuck.
	maxEvents = 20_000
)

// A stage is one run of a scenario: an ensemble, a network, clients, and the records for the
// verdict.
type stage struct {
	of      faultCase
	server  *domain
	net     *network.Net
	clients []*client
	judges  []*judge
	probes  []probe
	report  bool // record what the report of a case needs
	disarm  []func()
	remains map[string]harm // that allows more znodes of a path
	begun   time.Time

	ctx        context.Context // ends when the stage is torn down
	tearDown   context.CancelFunc
	playing    context.Context // ends when the scenario has ended
	endPlay    context.CancelFunc
	background tasks // faults that have not ended

	mu      sync.Mutex
	wrong   []string
	said    []string
	struck  int       // strikes that have hit their frames
	last    time.Time // time of the latest strike
	nothing string    // reason for which a strike had no effect

	stolen   map[string]bool // messages that another client has taken
	putAgain func(id string) // records a message that another client has put; nil in scenarios without a queue
	deleted  func()          // records that another client deletes messages; nil in scenarios without a queue

	shortest time.Duration // the shortest session timeout that the servers have granted
}

// An outcome has the results of a run.
type outcome struct {
	of      faultCase
	wrong   []string // empty if the case has passed
	struck  int
	last    time.Time // time of the latest strike
	nothing string
	frames  []network.Frame // frames until the end of the scenario
	left    map[string]int  // znodes at the end, as znodes returns them
	waited  []int           // by client: watches at the end for which calls wait
	took    time.Duration   // of the bubble's time

	// For the report of a case, if run was asked for one:
	said []string
	ops  []zkserver.Op
	dump string
	from time.Time
}

// run runs a case in its own bubble. trace is the outcome without faults, nil in that run. The
// outcome has what a report needs only if report is set, because the recording takes time.
func run(t *testing.T, c faultCase, trace *outcome, report bool) *outcome {
	out := &outcome{of: c}
	s := &stage{of: c, remains: make(map[string]harm), stolen: make(map[string]bool), report: report, shortest: timeout}
	func() {
		defer func() {
			// synctest panics if goroutines are left when the bubble ends.
			if r := recover(); r != nil {
				s.fail("goroutines are left: %v", r)
			}
		}()
		synctest.Test(t, func(*testing.T) { s.run(out, trace) })
	}()
	out.wrong, out.said, out.struck, out.last, out.nothing = s.wrong, s.said, s.struck, s.last, s.nothing
	return out
}

func (s *stage) run(out, trace *outcome) {
	s.begun = time.Now()
	out.from = s.begun
	cfg := s.of.servers()
	server, err := zkserver.NewEnsemble(cfg, ensemble)
	if err != nil {
		s.fail("start the ensemble: %v", err)
		return
	}
	s.server = &domain{server, cfg.Without, s.of.world.chroot}
	s.ctx, s.tearDown = context.WithCancel(context.Background())
	s.playing, s.endPlay = context.WithCancel(s.ctx)
	s.net = network.New(network.Steady(latency), s.of.scenario.clients)
	s.net.Record()
	go s.net.Run()
	for i := range s.of.scenario.clients {
		s.clients = append(s.clients, &client{stage: s, number: i})
	}
	s.net.SetDistance(s.of.farClient(), s.of.world.far)
	if s.of.world.setUp != nil {
		s.of.world.setUp(s)
	}
	for _, k := range s.of.strikes {
		s.arm(k)
	}
	if s.perform(out) && s.calm() && !s.failed() {
		s.check(out, trace)
	}
	s.end(out)
}

// arm makes a strike happen at its frame.
func (s *stage) arm(k strike) {
	s.disarm = append(s.disarm, s.net.Strike(network.Strike{At: &k.at, Do: k.fault.do, For: k.fault.lasts, Then: func(f network.Frame) {
		s.say("%s strikes %v", k.fault.name, description(f))
		s.mu.Lock()
		s.struck++
		s.last = time.Now()
		s.mu.Unlock()
		s.heal(k.fault.lasts, func() {}) // a delayed frame arrives after that time
		if k.fault.then != nil {
			k.fault.then(s, f)
		}
	}}))
}

// perform runs the scenario, and reports whether it has ended.
func (s *stage) perform(out *outcome) bool {
	ended := s.within("the scenario", budget, func() {
		if !s.of.scenario.connects {
			for _, c := range s.clients {
				c.connect()
			}
		}
		s.of.scenario.run(s)
	})
	s.endPlay()
	for _, disarm := range s.disarm {
		disarm() // faults must not disturb the checks
	}
	out.frames = s.net.Frames()
	return ended
}

// calm waits until all faults have ended.
func (s *stage) calm() bool {
	return s.within("a fault or Manager.Close", 10*timeout, s.background.wait)
}

// end closes all Managers, checks that nothing is left, and closes the server.
func (s *stage) end(out *outcome) {
	stuck := s.failed()
	s.tearDown()
	if stuck {
		s.net.Disarm() // so that no fault delays Close
	}
	var closing sync.WaitGroup
	for _, c := range s.clients {
		for _, m := range c.managers() {
			closing.Go(func() { m.Close() })
		}
	}
	if s.within("Manager.Close", 5*timeout, closing.Wait) && !stuck {
		s.checkClosed()
	}
	out.took = time.Since(s.begun)
	if s.report {
		out.ops, out.dump = s.server.Ops(), s.server.Dump()
	}
	s.net.Close()
	s.server.Close()
}

// within runs f, and records a failure if f does not return in time.
func (s *stage) within(what string, patience time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	look := time.NewTicker(timeout)
	defer look.Stop()
	for end := time.Now().Add(patience); ; {
		select {
		case <-done:
			return true
		case <-look.C:
		}
		if _, events := s.net.Fingerprint(); time.Now().After(end) || events > maxEvents {
			s.fail("stuck: %s has not ended after %v and %d frames; %s", what, time.Since(s.begun).Round(time.Second), events, s.waiting())
			return false
		}
	}
}

// waiting lists the calls that have not returned.
func (s *stage) waiting() string {
	var calls []string
	for _, c := range s.clients {
		calls = append(calls, c.waitingIn()...)
	}
	if len(calls) == 0 {
		return "no call is waiting"
	}
	return "waiting: " + strings.Join(calls, ", ")
}

// dial returns a dialer that connects a client to its next server. A client begins with its own
// follower, or with the leader if a fault requires it, and then goes from one server to the next. A
// Manager tries addresses in a random order, so the first address that it asks for stands for the
// first server, and so on.
func (s *stage) dial(c *client) session.DialFunc {
	known := make(map[string]*zkserver.Endpoint)
	return s.net.Dialer(c.number, func(ctx context.Context, address string) (net.Conn, error) {
		e, ok := known[address]
		if !ok {
			first := 1 + c.number%(ensemble-1)
			if s.of.leader() == c.number {
				first = ensemble
			}
			e = s.server.Endpoint(1 + (first-1+len(known))%ensemble)
			known[address] = e
		}
		c.endpoint = e
		return e.Dial(ctx, "tcp", address)
	})
}

// harm returns the harms that the faults of the case may cause.
func (s *stage) harm() (all harm) {
	silent := 0
	for _, k := range s.of.strikes {
		all |= k.fault.harm
		if k.fault.harm&silences != 0 {
			silent++
		}
	}
	if silent > 1 || silent > 0 && (s.of.scenario.fresh || s.of.world.far > 0 || all&postpones != 0) {
		// Each of two silences is noticed in time, but both together may take too long. One silence may take too long
		// after a refused transaction, for a session that was idle directly before, and for a client far away: the
		// silence is noticed after T/4, the next connection takes four round trips of T/20 until a transaction is
		// answered, and the Deadline is only 0.28 of T ahead at the least.
		all |= loses
	}
	if all&stalls != 0 && (s.of.world.far > 0 || len(s.of.strikes) > 1) {
		all |= loses // the transaction after T/4 takes T/20 more, or has another fault
	}
	return all
}

func (s *stage) mayLose() bool { return s.harm()&loses != 0 }

// fail records a failure. Later failures often follow from the first failure.
func (s *stage) fail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	s.said = append(s.said, s.stamp()+"WRONG: "+text)
	if len(s.wrong) < 5 {
		s.wrong = append(s.wrong, text)
	}
}

func (s *stage) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.wrong) > 0
}

// say records an event for the report of a case.
func (s *stage) say(format string, args ...any) {
	if !s.report {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, s.stamp()+fmt.Sprintf(format, args...))
}

func (s *stage) stamp() string { return fmt.Sprintf("%10.6f: ", time.Since(s.begun).Seconds()) }

// A description is the name of a frame in a report.
type description network.Frame

func (d description) String() string {
	f := network.Frame(d)
	what := zkserver.OpCode(f.Op).String()
	if answers(f) {
		what = "answer to " + what
	}
	return fmt.Sprintf("%v (%s)", f.Address, what)
}
