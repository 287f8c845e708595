// Command bench measures the costs of coordination through ZooKeeper with this
// library and with others, side by side on the same server.
//
//	cd examples/bench && go run . -real -out results
//
// starts a ZooKeeper of Debian's package, and etcd and Redis if they are there,
// runs every row for every contender in turn, several rounds, and writes a table,
// the numbers as JSON, and a chart. With -servers it measures an ensemble of yours
// instead, below the path /zksync-bench, which it removes. Contenders that are not
// installed are left out by name.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// root is where all znodes are.
const root = "/zksync-bench"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A report is all of a run.
type report struct {
	Machine string    `json:"machine"`
	Began   time.Time `json:"began"`
	Results []result  `json:"results"`
	LeftOut []string  `json:"left_out,omitempty"`
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	servers := fs.String("servers", "", "the ensemble to measure on, as host:port,...")
	real := fs.Bool("real", false, "start a ZooKeeper of Debian's package and measure on that")
	rounds := fs.Int("rounds", 0, "rounds of each row; 0 is what the row wants")
	only := fs.String("rows", "", "a regular expression; only rows whose title matches run")
	who := fs.String("contenders", "", "a regular expression; only contenders whose name matches take part")
	out := fs.String("out", "", "a directory for table.md, results.json and chart.svg")
	limit := fs.Duration("limit", 3*time.Minute, "how long one contender may take for one round of a row")
	peers := fs.String("peers", "peers", "the directory of the programs in other languages")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-rows %q: %w", *only, err)
	}
	names, err := regexp.Compile(*who)
	switch {
	case err != nil:
		return fmt.Errorf("-contenders %q: %w", *who, err)
	case (*servers == "") != *real:
		return errors.New("give either -servers host:port,... or -real")
	case *rounds < 0 || *limit <= 0 || fs.NArg() > 0:
		return fmt.Errorf("-rounds %d must not be negative, -limit %v be positive, and nothing may follow the flags (%q)", *rounds, *limit, fs.Args())
	}
	b := &bench{progress: stderr, limit: *limit, peers: *peers, wanted: names}
	defer b.close()
	if err := b.open(ctx, *servers); err != nil {
		return err
	}
	rep := report{Machine: b.machine(), Began: time.Now().UTC().Truncate(time.Second)}
	for _, r := range allRows() {
		if !pattern.MatchString(r.title) {
			continue
		}
		if *rounds > 0 {
			r.rounds = *rounds
		}
		res, err := b.row(ctx, r)
		if err != nil {
			return err
		}
		res.Verdicts = judge(r.goals, res, rep.Results)
		rep.Results = append(rep.Results, res)
	}
	rep.LeftOut = b.leftOut
	if err := writeTable(stdout, rep); err != nil || *out == "" {
		return err
	}
	return save(*out, rep)
}

func save(dir string, rep report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var table strings.Builder
	if err := writeTable(&table, rep); err != nil {
		return err
	}
	numbers, err := json.MarshalIndent(rep, "", "\t")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "table.md"), []byte(table.String()), 0o644),
		os.WriteFile(filepath.Join(dir, "results.json"), append(numbers, '\n'), 0o644),
		drawChart(filepath.Join(dir, "chart.svg"), rep.Results),
	)
}

// A bench has the servers and the contenders.
type bench struct {
	progress   io.Writer
	limit      time.Duration
	peers      string
	wanted     *regexp.Regexp // by name
	dir        string
	running    []*server
	contenders []contender
	sweeper    *session.Manager
	leftOut    []string
	runs       int
}

// open starts the contenders that are installed, and notes the missing ones.
func (b *bench) open(ctx context.Context, servers string) error {
	starting, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var err error
	if b.dir, err = os.MkdirTemp("", "zksync-bench"); err != nil {
		return err
	}
	if servers == "" {
		zookeeper, err := startZooKeeper(starting, b.dir)
		if err != nil {
			return err
		}
		b.running = append(b.running, zookeeper)
		servers = zookeeper.address
	}
	if b.sweeper, err = session.Connect(starting, servers); err != nil {
		return err
	}
	b.add(bare, func() (contender, error) { return newRequests(servers) })
	b.add(same, func() (contender, error) { return newSameRequests(servers) })
	b.add(ours, func() (contender, error) { return newToolkit(servers), nil })
	b.add(observed, func() (contender, error) { return newObserved(servers), nil })
	b.add(goZK, func() (contender, error) { return newStock(servers), nil })
	b.add(curator, func() (contender, error) { return startCurator(servers, b.peers) })
	b.add(kazoo, func() (contender, error) { return startKazoo(servers, b.peers) })
	b.add(etcd, func() (contender, error) {
		s, err := startEtcd(starting, b.dir)
		if err != nil {
			return nil, err
		}
		b.running = append(b.running, s)
		return newEtcdLocks("http://" + s.address)
	})
	b.add(redis, func() (contender, error) {
		s, err := startRedis(starting, b.dir)
		if err != nil {
			return nil, err
		}
		b.running = append(b.running, s)
		return newRedisLocks(s.address), nil
	})
	return nil
}

func (b *bench) add(name string, open func() (contender, error)) {
	if !b.wanted.MatchString(name) {
		return
	}
	c, err := open()
	if err != nil {
		b.leftOut = append(b.leftOut, fmt.Sprintf("%s: %v", name, err))
		fmt.Fprintf(b.progress, "without %s: %v\n", name, err)
		return
	}
	b.contenders = append(b.contenders, c)
}

func (b *bench) close() {
	for _, c := range b.contenders {
		if err := c.close(); err != nil {
			fmt.Fprintf(b.progress, "closing %s: %v\n", c.name(), err)
		}
	}
	if b.sweeper != nil {
		b.sweep(root)
		b.sweeper.Close()
	}
	for _, s := range b.running {
		if err := s.stop(); err != nil {
			fmt.Fprintln(b.progress, err)
		}
	}
	os.RemoveAll(b.dir)
}

// sweep removes a path, so that no row pays for znodes of an earlier row.
func (b *bench) sweep(path string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := b.sweeper.Do(ctx, func(ctx context.Context, s *session.Session) error { return deleteAll(ctx, s, path) })
	if err != nil {
		fmt.Fprintf(b.progress, "removing %s: %v\n", path, err)
	}
}

// row runs the contenders in turn, each time another one first.
func (b *bench) row(ctx context.Context, r row) (result, error) {
	res := result{Title: r.title, Unit: r.unit}
	contenders := b.contenders
	if strings.HasPrefix(r.Row, "embedded") {
		contenders = []contender{newEmbedded()}
	}
	samples := make([][]sample, len(contenders))
	failed := make([]error, len(contenders))
	for round := range r.rounds {
		for k := range contenders {
			i := (k + round) % len(contenders)
			c := contenders[i]
			if failed[i] != nil {
				continue
			}
			s, err := b.once(ctx, c, r)
			if ctx.Err() != nil {
				return res, context.Cause(ctx)
			}
			if failed[i] = err; err == nil {
				samples[i] = append(samples[i], s)
				fmt.Fprintf(b.progress, "%s, round %d of %d: %s %s %s\n", r.title, round+1, r.rounds, c.name(), number(r.value(s)), r.unit)
			} else if !errors.Is(err, errNoSuchRow) {
				fmt.Fprintf(b.progress, "%s, round %d of %d: %s: %v\n", r.title, round+1, r.rounds, c.name(), err)
			}
		}
	}
	for i, c := range contenders {
		switch {
		case errors.Is(failed[i], errNoSuchRow):
		case failed[i] != nil:
			res.Measures = append(res.Measures, measure{Contender: c.name(), Missing: failed[i].Error()})
		default:
			res.Measures = append(res.Measures, summarize(c.name(), r.value, samples[i]))
		}
	}
	return res, nil
}

func (b *bench) once(ctx context.Context, c contender, r row) (sample, error) {
	b.runs++
	j := r.job
	j.Path = fmt.Sprintf("%s/%s-%d", root, strings.ReplaceAll(r.Row, " ", "-"), b.runs)
	if few := r.few[c.name()]; few > 1 {
		j.Ops = max(j.Ops/few, j.Clients)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.limit, fmt.Errorf("%v are over", b.limit))
	defer cancel()
	runtime.GC() // no contender pays for the garbage of another
	s, err := c.run(ctx, j)
	b.sweep(j.Path)
	return s, err
}

func (b *bench) machine() string {
	return fmt.Sprintf("%s/%s, %d CPUs, %s; ZooKeeper, all contenders and their servers on the same machine.",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
}
