package interop

import (
	"flag"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/zksynctest/internal/realzk"
)

// A side is a kind of process that competes for a lock.
type side struct {
	name string
	in   *language
	kind string
	args []string
}

var (
	ours        = side{"zksync", golang, "zksync-mutex", nil}
	oursAsKazoo = side{"zksync", golang, "zksync-mutex", []string{"kazoo"}}

	curator     = side{"Curator", java, "curator-mutex", nil}
	kazoo       = side{"kazoo", python, "kazoo-lock", nil}
	kazooTold   = side{"kazoo", python, "kazoo-lock", []string{"-lock-"}} // by extra_lock_patterns
	goZookeeper = side{"go-zookeeper", golang, "go-zookeeper-lock", nil}
	recipe      = side{"recipe", java, "recipe-lock", nil}
)

// pairs has the pairs of sides that exclude each other.
var pairs = map[string][2]side{
	"Curator":              {ours, curator},
	"kazoo with patterns":  {ours, kazooTold},
	"kazoo by LayoutKazoo": {oursAsKazoo, kazoo},
	"go-zookeeper":         {ours, goZookeeper},
	"recipe":               {ours, recipe},
}

// acquisitions is small in a run of all tests of the module; .ci/run uses 1,000.
var acquisitions = flag.Int("acquisitions", bounds.Size(100, 200), "how often each side of TestContention gets the lock")

// deadSession is the time until a crash is noticed. A client that gets no processor time for half
// of deadSession loses its lock.
var deadSession = bounds.Size(4*time.Second, 6*time.Second)

// A Mutex excludes with Curator's InterProcessMutex, go-zookeeper's Lock and the recipe of
// ZooKeeper, and with kazoo's Lock by an option. TestContention makes two processes compete for one
// lock, one of them ours. Each process is killed once while it holds the lock, and another process
// replaces it.
func TestContention(t *testing.T) {
	t.Parallel()
	for name, pair := range pairs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, srv servers.Server) {
				n := *acquisitions
				if strings.HasSuffix(t.Name(), "zkserver") {
					if _, err := realzk.FindRuntime(); err == nil {
						bounds.Long(t) // a plain run has the pair on the real server
					}
					n /= 4
				}
				w := newWitness(t)
				path := servers.Path(t)
				if pair[1].in == python && pair[0].args == nil {
					lasting(t, srv, path)
				}
				// All processes start before the first of them competes: a missing client library
				// skips the test, which ends the processes that run by then.
				var procs [2][]*client
				for i, s := range pair {
					for range 2 {
						procs[i] = append(procs[i], s.in.process(t).connect(t, srv.Address(), deadSession))
					}
				}
				var wg sync.WaitGroup
				for i, s := range pair {
					wg.Go(func() { s.contend(t, procs[i], path, w, n) })
				}
				wg.Wait()
				w.check(t, 2*n)
			})
		})
	}
}

// lasting creates a directory that stays when it is empty: kazoo checks the directory only once,
// while Curator and zksync create containers.
func lasting(t *testing.T, srv servers.Server, path string) {
	t.Helper()
	s, err := srv.Connect(t).Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), path, nil, zk.FlagPersistent); err != nil {
		t.Fatal(err)
	}
}

// contend acquires the lock n times. The first process is killed half way, while it holds the lock,
// and the second process continues.
func (s side) contend(t *testing.T, procs []*client, path string, w witness, n int) {
	first := procs[0].make(t, s.kind, path, s.args...)
	ended := first.start("contend", strconv.Itoa(n), w.dir, s.name, strconv.Itoa(n/2))
	select {
	case <-first.told:
	case a := <-ended:
		t.Errorf("%s: %q, %v", s.name, a.text, a.err)
		return
	case <-time.After(2 * answerTime):
		t.Errorf("%s never held for the %dth time", s.name, n/2)
		return
	}
	first.kill()
	second := procs[1].make(t, s.kind, path, s.args...)
	select {
	case a := <-second.start("contend", strconv.Itoa(n-n/2), w.dir, s.name, "0"):
		if a.err != nil {
			t.Errorf("%s, after the crash: %v", s.name, a.err)
		}
	case <-time.After(2 * answerTime):
		t.Errorf("%s did not get its turns after the crash", s.name)
	}
}

// check verifies the notes at the end of the test.
func (w witness) check(t *testing.T, want int) {
	t.Helper()
	order := w.order(t)
	if n, err := w.count(); n != want || err != nil {
		t.Errorf("the count is %d (%v), want %d: somebody counted beside another", n, err, want)
	}
	turns := 0
	for i := range order {
		if i == 0 || order[i] != order[i-1] {
			turns++
		}
	}
	if len(order) != want {
		t.Errorf("%d have held, want %d", len(order), want)
	}
	// Two processes that compete continuously take turns; one of them is absent until its crash is
	// noticed.
	t.Logf("%d acquisitions in %d turns", len(order), turns)
}
