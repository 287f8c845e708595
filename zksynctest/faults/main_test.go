package faults

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/zksynctest"
)

var (
	runs     = flag.Int("runs", 0, "how often TestLease runs each scenario in its full size; 0 runs one group, or with ZKSYNC_LONG=1 each scenario, once in its small size")
	tick     = flag.Duration("tick", 0, "the servers' tick in TestLease, in place of the ticks of each scenario; goes with -session")
	timeout  = flag.Duration("session", 0, "the session timeout in TestLease, in place of those of each scenario; goes with -tick")
	crowd    = flag.Int("crowd", 0, "how many other sessions are due together with A's where TestLease pauses the leader, in place of the number of each scenario")
	seed     = flag.Uint64("seed", 0, "decides when the faults of TestLease happen; 0 takes another seed each time")
	lanes    = flag.Int("lanes", 2, "how many ensembles share the runs of one scenario in its full size")
	parallel = flag.Int("ensembles", 6, "how many ensembles run at the same time")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if (*tick == 0) != (*timeout == 0) {
		fmt.Fprintln(os.Stderr, "-tick and -session go together")
		os.Exit(2)
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	servers.AtOnce(*parallel)
	goleak.VerifyTestMain(tablePrinter{zksynctest.StopSharedAfter(m)})
}

// tablePrinter prints the table of TestLease after the tests have run.
type tablePrinter struct{ tests zksynctest.Runner }

// Run runs the tests and prints the table.
func (p tablePrinter) Run() int {
	code := p.tests.Run()
	results.print(os.Stdout)
	return code
}

// A size has the settings that determine the margins of a scenario.
type size struct {
	tick      time.Duration
	timeout   time.Duration // T
	syncLimit int           // in ticks; 0 is the default of zksynctest
	crowd     int           // number of other sessions that are due together with A's session, if the leader is paused
}

func (s size) options() []zksynctest.RealOption {
	opts := []zksynctest.RealOption{zksynctest.RealTickTime(s.tick)}
	if s.syncLimit != 0 {
		opts = append(opts, zksynctest.RealSyncLimit(s.syncLimit))
	}
	return opts
}
