// Command bench measures the costs of coordination through ZooKeeper with this
// library and with others, side by side on the same server.
//
//	cd examples/bench && go run . -real -out results
//
// starts a ZooKeeper of Debian's package, and etcd and Redis if they are there,
// runs every row for every contender in turn, several rounds, and writes a table,
// the numbers as JSON, and a chart. On loopback the disk decides. Therefore a second run puts
// proxies before the servers, which add a millisecond to each way. With -servers it measures an ensemble of yours
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
	"slices"
	"strings"
	"time"
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
	distance := fs.Duration("distance", time.Millisecond, "the time that proxies add to each way between clients and servers, in a second run of the rows; 0 leaves that run out")
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
	case *rounds < 0 || *distance < 0 || *limit <= 0 || fs.NArg() > 0:
		return fmt.Errorf("-rounds %d and -distance %v must not be negative, -limit %v be positive, and nothing may follow the flags (%q)", *rounds, *distance, *limit, fs.Args())
	}
	b := &bench{progress: stderr, limit: *limit, peers: *peers, wanted: names}
	defer b.close()
	if err := b.start(ctx, *servers); err != nil {
		return err
	}
	rep := report{Machine: b.machine(), Began: time.Now().UTC().Truncate(time.Second)}
	for _, away := range slices.Compact([]time.Duration{0, *distance}) {
		rows := slices.DeleteFunc(rowsAt(away), func(r row) bool { return !pattern.MatchString(r.title) })
		if err := b.rows(ctx, away, rows, *rounds, &rep); err != nil {
			return err
		}
	}
	rep.LeftOut = b.leftOut
	if err := writeTable(stdout, rep); err != nil || *out == "" {
		return err
	}
	return save(*out, rep)
}

// rows measures rows at a distance from the servers.
func (b *bench) rows(ctx context.Context, distance time.Duration, rows []row, rounds int, rep *report) error {
	if len(rows) == 0 {
		return nil
	}
	defer b.leave()
	if err := b.open(distance); err != nil {
		return err
	}
	for _, r := range rows {
		if rounds > 0 {
			r.rounds = rounds
		}
		res, err := b.row(ctx, r)
		if err != nil {
			return err
		}
		res.Verdicts = judge(r.goals, res, rep.Results)
		rep.Results = append(rep.Results, res)
	}
	return nil
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
