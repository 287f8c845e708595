//go:build unix

package chaos

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

var (
	chaosFor  = flag.Duration("chaos", 5*time.Second, "how long TestChaos has things go wrong")
	chaosSeed = flag.Uint64("chaosseed", 0, "what goes wrong; 0 is another every time")
	chaosOut  = flag.String("chaosout", "", "a directory for the clients' notes and the servers' logs")
)

const clients = 4

func TestMain(m *testing.M) {
	if os.Getenv(clientEnv) != "" {
		os.Exit(runClient())
	}
	flag.Parse()
	goleak.VerifyTestMain(m)
}

// While processes of clients and servers are killed, paused and cut off, no two clients hold a lock at the same time,
// tokens only grow, no message is lost, and every client makes progress afterwards. TestChaos has four client processes
// work on one ensemble of three servers while servers, clients and the links between them are hurt, and checks the
// notes of the clients.
func TestChaos(t *testing.T) {
	bounds.Long(t)
	seed := *chaosSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-chaosseed %d", seed)
	e := zksynctest.RealZooKeeper(t, servers, recovering...)
	dir := t.TempDir()
	if *chaosOut != "" {
		dir = *chaosOut
	}
	crew := newCrew(t, e.Servers(), dir, clients)
	faults := &tally{t: t, n: make(map[string]int)}

	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), *chaosFor)
	defer cancel()
	var wg sync.WaitGroup
	r := func(lane uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, lane)) }
	wg.Go(func() { hurtServers(ctx, r(1), e, faults) })
	wg.Go(func() { hurtLinks(ctx, r(2), e, faults) })
	wg.Go(func() { hurtClients(ctx, r(3), e, crew, faults) })
	wg.Wait()

	e.HealAll()
	e.WaitReady()
	calm := time.Now()
	stuck := crew.getOn(calm)
	crew.finish()
	diaries := crew.diaries()
	m := e.Connect(t)
	diaries = append(diaries, drain(t, m))
	wrong := judge(diaries)
	wrong = append(wrong, stuck...)
	left, markers := leftovers(t, m)
	if len(left) > 0 {
		wrong = append(wrong, fmt.Sprintf("znodes are left: %q", left))
	}
	const shown = 20
	for _, w := range wrong[:min(len(wrong), shown)] {
		t.Error(w)
	}
	if len(wrong) > shown {
		t.Errorf("and %d more", len(wrong)-shown)
	}
	if *chaosOut != "" {
		keep(t, e, dir, wrong)
	}
	t.Log("\n" + summary(diaries, faults, calm.Sub(began), len(wrong), len(left), markers))
}

// keep stores the servers' logs and the verdict beside the clients' notes.
func keep(t *testing.T, e *zksynctest.Ensemble, dir string, wrong []string) {
	verdict := filepath.Join(dir, "violations")
	if err := os.WriteFile(verdict, []byte(strings.Join(wrong, "\n")), 0o600); err != nil {
		t.Error(err)
	}
	for i := range servers {
		path := filepath.Join(dir, fmt.Sprintf("server%d.log", i+1))
		if err := os.WriteFile(path, []byte(e.Log(i+1)), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// drain receives the remaining messages of the queue and returns their diary.
func drain(t *testing.T, m *session.Manager) diary {
	d := diary{client: "drain"}
	q := zksync.NewQueue(m, root+"/queue")
	defer q.Close()
	for {
		// Claims of dead clients disappear when their sessions expire.
		ctx, cancel := context.WithTimeout(t.Context(), 3*sessionTimeout)
		data, err := q.Take(ctx)
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("drain: %v", err)
			}
			return d
		}
		now := time.Now().UnixNano()
		d.notes = append(d.notes, note{At: now, Kind: got, Text: string(data)}, note{At: now, Kind: acked, Text: string(data)})
	}
}

// getOn waits until every client makes progress again. Killed clients may have been first in line:
// their sessions have to expire first.
func (c *crew) getOn(calm time.Time) []string {
	deadline := time.Now().Add(time.Minute)
	for {
		stuck := standstill(c.diaries(), calm.UnixNano())
		if len(stuck) == 0 || time.Now().After(deadline) {
			return stuck
		}
		pause(c.t.Context(), 500*time.Millisecond)
	}
}

// standstill lists the primitives and clients that made no progress after the end of the faults.
func standstill(diaries []diary, calm int64) (wrong []string) {
	seen := make(map[string]bool)
	for _, d := range diaries {
		for _, n := range d.notes {
			if n.At > calm && (n.Kind == held || n.Kind == acked) {
				seen[n.What] = true
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(capacity)) {
		if !seen[what] {
			wrong = append(wrong, "nobody got hold of "+what+" after the faults had ended")
		}
	}
	return wrong
}

// leftovers lists the znodes that no client needs any more after the sessions of dead clients have
// expired, and counts the markers of killed producers, which are swept after a day.
func leftovers(t *testing.T, m *session.Manager) (left []string, markers int) {
	deadline := time.Now().Add(5 * sessionTimeout)
	for {
		left, markers = nil, 0
		err := m.Do(t.Context(), func(ctx context.Context, s *session.Session) error {
			left, markers = nil, 0
			return walk(ctx, s, root, func(path string, stat *zk.Stat) {
				switch {
				case strings.Contains(path, "/zksync-markers/"):
					markers++
				case stat.EphemeralOwner != 0 || strings.Contains(path, "/qn-"):
					left = append(left, path)
				}
			})
		})
		if err != nil {
			t.Error(err)
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return left, markers
		}
		pause(t.Context(), 200*time.Millisecond)
	}
}

func walk(ctx context.Context, s *session.Session, path string, visit func(string, *zk.Stat)) error {
	names, stat, err := s.Children(ctx, path)
	if err == zk.ErrNoNode {
		return nil
	} else if err != nil {
		return err
	}
	visit(path, stat)
	for _, name := range names {
		if err := walk(ctx, s, path+"/"+name, visit); err != nil {
			return err
		}
	}
	return nil
}

// summary returns the final table.
func summary(diaries []diary, faults *tally, length time.Duration, wrong, left, markers int) string {
	var b strings.Builder
	line := func(name string, value any) { fmt.Fprintf(&b, "| %-36s | %10v |\n", name, value) }
	fmt.Fprintf(&b, "| %-36s | %10s |\n|%s|%s:|\n", "", "", strings.Repeat("-", 38), strings.Repeat("-", 11))
	line("time", length.Round(time.Second))
	line("client processes, one after another", len(diaries)-1)
	kinds := make(map[string]int)
	for _, d := range diaries {
		for _, n := range d.notes {
			switch n.Kind {
			case held:
				kinds["holds of "+n.What]++
			case put, acked, got:
				kinds["messages "+string(n.Kind)]++
			case released:
				if n.Text != "" {
					kinds["holds that were lost"]++
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		line(name, kinds[name])
	}
	for _, name := range faults.names() {
		line("fault: "+name, faults.n[name])
	}
	gap, _ := longestGap(diaries)
	line("longest time without progress", gap.Round(time.Millisecond))
	line("markers of killed producers", markers)
	line("znodes left", left)
	line("violations", wrong)
	return b.String()
}
