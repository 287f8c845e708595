package main

import (
	"fmt"
	"time"
)

// The names of the contenders as rows speak of them.
const (
	ours     = "zksync"
	observed = "zksync, observed"
	bare     = "bare requests"
	same     = "same requests"
	goZK     = "go-zookeeper"
	curator  = "Curator"
	kazoo    = "kazoo"
	etcd     = "etcd"
	redis    = "redsync"
)

// A row is a line of the table: one job for all contenders.
type row struct {
	job
	title string
	// rounds is how often each contender runs, in turn.
	rounds int
	// few divides Ops for the contenders that would take minutes.
	few map[string]int
	// value returns the number to compare; less is better.
	value func(sample) float64
	unit  string
	goals []goal
	// away has the goals at a distance from the servers. Without any, the row is measured beside
	// the servers only.
	away []goal
}

// A goal bounds the ratio of our value to the value of other contenders in the same
// row, or to our own value in another row.
type goal struct {
	text string
	// than names the contenders; the best contender that ran counts. Empty means the
	// value itself is bounded.
	than []string
	// in is the title of the row to compare with; empty is the row itself.
	in    string
	bound float64
	// atLeast wants others to be bound times as slow as we are; otherwise our
	// value is at most bound times theirs.
	atLeast bool
}

func microseconds(s sample) float64 { return float64(s.perOp().Nanoseconds()) / 1e3 }

func extra(key string) func(sample) float64 {
	return func(s sample) float64 { return s.Extra[key] }
}

// peers are the other ways to do it through ZooKeeper.
var peers = []string{goZK, curator, kazoo}

func atMost(bound float64, text string, than ...string) goal {
	return goal{text: text, than: than, bound: bound}
}

func atLeast(bound float64, text string, than ...string) goal {
	return goal{text: text, than: than, bound: bound, atLeast: true}
}

// rowsAt returns the rows that are measured at a distance from the servers.
func rowsAt(distance time.Duration) (rows []row) {
	if distance == 0 {
		return allRows()
	}
	suffix := fmt.Sprintf(", servers %v away", distance)
	for _, r := range allRows() {
		if r.away == nil {
			continue
		}
		r.title += suffix
		r.goals = nil
		for _, g := range r.away {
			if g.in != "" && len(g.than) > 0 {
				g.in += suffix // a row of the same run
			}
			r.goals = append(r.goals, g)
		}
		rows = append(rows, r)
	}
	return rows
}

// allRows is the table of the targets.
func allRows() []row {
	rows := []row{{
		job:    job{Row: "lock", Ops: 200, Clients: 1, Sessions: 1},
		title:  "uncontended Lock + Unlock",
		rounds: 15,
		value:  microseconds, unit: "µs",
		goals: []goal{
			atMost(1.1, "at most 1.1 x a bare create + delete", bare),
			{text: "2 requests", bound: 2, in: "requests"},
		},
		away: []goal{atMost(1.1, "at most 1.1 x a bare create + delete", bare)},
	}}
	for _, title := range []func(int) string{handoverTitle, turnsTitle} {
		for _, n := range []int{8, 64, 256, 1000} {
			r := row{
				job:    job{Row: "handover", Ops: max(n, 512), Clients: n, Sessions: 20},
				title:  title(n),
				rounds: 5,
				value:  microseconds, unit: "µs a lock",
				goals: []goal{atMost(1.15, "at most 1.15 x the same requests", same)},
				away: []goal{
					atLeast(1.6, "at least 1.6 x the best peer's locks a second", peers...),
					atMost(1.15, "at most 1.15 x the bare requests", bare),
				},
			}
			if title(n) == turnsTitle(n) {
				r.Row = "turns"
				r.goals, r.away = []goal{atLeast(1.6, "at least 1.6 x the best peer's locks a second", peers...)}, nil
			}
			if n == 1000 {
				asFast := goal{text: "at least 0.8 x as fast as with 8 waiters", than: []string{ours}, in: title(8), bound: 1 / 0.8}
				r.goals = append(r.goals, asFast)
				if r.away != nil {
					r.away = append(r.away, asFast)
				}
			}
			rows = append(rows, r)
		}
	}
	rows = append(rows, row{
		job:    job{Row: "shared", Ops: 12800, Clients: 64, Sessions: 1},
		title:  "64 goroutines on one Mutex",
		rounds: 5,
		few:    map[string]int{goZK: 50, curator: 50, kazoo: 50, etcd: 50, redis: 50},
		value:  microseconds, unit: "µs a lock",
		goals: []goal{atLeast(50, "at least 50 x go-zookeeper's Lock", goZK)},
	}, row{
		job:    job{Row: "linger", Ops: 20000, Clients: 1, Sessions: 1},
		title:  "Lock again within WithLinger",
		rounds: 5,
		value:  microseconds, unit: "µs",
		goals: []goal{{text: "at most 5 µs", bound: 5}, {text: "no request", bound: 0, in: "requests"}},
	}, row{
		job:    job{Row: "put", Ops: 300, Clients: 1, Sessions: 1},
		title:  putAloneTitle,
		rounds: 5,
		value:  microseconds, unit: "µs a message",
	}, row{
		job:    job{Row: "put", Ops: 12800, Clients: 64, Sessions: 1},
		title:  "Queue.Put, 64 goroutines",
		rounds: 5,
		few:    map[string]int{curator: 8, kazoo: 8},
		value:  microseconds, unit: "µs a message",
		goals: []goal{
			atLeast(4, "at least 4 x Curator's offer by 64 threads", curator),
			atMost(1/0.8, "at least 0.8 x raw multis of 64 creates, one at a time", bare),
		},
		away: []goal{
			atLeast(4, "at least 4 x Curator's offer by 64 threads", curator),
			atMost(1/0.8, "at least 0.8 x raw multis of 64 creates, one at a time", bare),
		},
	})
	for _, n := range []int{1000, 10000, 100000} {
		r := row{
			job:    job{Row: "deliver", Ops: n, Clients: 1, Sessions: 1, Backlog: n},
			title:  deliveryTitle(n),
			rounds: 5,
			few:    map[string]int{curator: n / 50, kazoo: n / 50},
			value:  microseconds, unit: "µs a message",
			goals: []goal{atMost(1/0.5, "at least 0.5 x raw multis of 128 deletes", bare)},
			away:  []goal{atMost(1/0.5, "at least 0.5 x raw multis of 128 deletes", bare)},
		}
		if n == 100000 {
			r.rounds = 3
			r.goals = append(r.goals,
				atLeast(20, "at least 20 x Curator's take", curator),
				goal{text: "as fast a message as with 1,000 (within 1.3)", than: []string{ours}, in: deliveryTitle(1000), bound: 1.3})
		}
		rows = append(rows, r)
	}
	eight := []goal{
		{text: "at least 1.2 x one consumer", than: []string{ours}, in: deliveryTitle(10000), bound: 1.2, atLeast: true},
		{text: "no consumer has more than twice the mean", in: "share", bound: 2},
	}
	rows = append(rows, row{
		job:    job{Row: "deliver", Ops: 10000, Clients: 8, Sessions: 8, Backlog: 10000},
		title:  "Queue delivery, 10000 waiting, 8 consumers",
		rounds: 5,
		few:    map[string]int{curator: 10, kazoo: 10},
		value:  microseconds, unit: "µs a message",
		goals: eight,
		away:  eight,
	}, row{
		job:    job{Row: "election", Ops: 50, Clients: 2, Sessions: 2},
		title:  "Election hand-over",
		rounds: 7,
		value:  microseconds, unit: "µs",
		goals: []goal{atMost(1.1, "at most 1.1 x the bare delete and its event", bare)},
		away:  []goal{atMost(0.65, "at most 0.65 x Curator's LeaderLatch", curator)},
	})
	for _, n := range []int{10, 100, 1000} {
		r := row{
			job:    job{Row: "barrier", Ops: n, Clients: n, Sessions: min(n, 20)},
			title:  barrierTitle(n),
			rounds: 3,
			value:  extra("bytes"), unit: "bytes a participant",
		}
		if n > 10 {
			r.goals = []goal{{text: "not more than with 10", than: []string{ours}, in: barrierTitle(10), bound: 1.05}}
		}
		rows = append(rows, r)
	}
	rows = append(rows, aboutObserver(job{Row: "observer read", Ops: 2000, Clients: 1, Sessions: 1}, "a read")...)
	rows = append(rows, aboutObserver(job{Row: "observer lock", Ops: 200, Clients: 1, Sessions: 1}, "uncontended Lock + Unlock")...)
	rows = append(rows, aboutObserver(job{Row: "observer queue", Ops: 5000, Clients: 1, Sessions: 1}, "Put and delivery")...)
	return append(rows, row{
		job:    job{Row: "waiting", Ops: 1000, Clients: 1000, Sessions: 20},
		title:  "a waiting Lock",
		rounds: 3,
		value:  extra("heap"), unit: "bytes of heap",
		goals: []goal{{text: "at most 4 KiB", bound: 4096}},
	}, row{
		job:    job{Row: "embedded requests", Ops: 400000, Clients: 4, Sessions: 4},
		title:  "embedded server, pipelined requests",
		rounds: 5,
		value:  microseconds, unit: "µs a request",
		goals: []goal{{text: "at least 100,000 a second", bound: 10}},
	}, row{
		job:    job{Row: "embedded start", Ops: 50},
		title:  "embedded server, start + first session",
		rounds: 5,
		value:  microseconds, unit: "µs",
		goals: []goal{{text: "less than 5 ms", bound: 5000}},
	})
}

// aboutObserver returns the rows that compare a job with an observer and without.
func aboutObserver(j job, what string) []row {
	return []row{
		{job: j, title: "observer, " + what, rounds: 15, value: microseconds, unit: "µs"},
		{job: j, title: "observer, allocations of " + what, rounds: 5, value: extra("allocations"), unit: "allocations"},
	}
}

const putAloneTitle = "Queue.Put, one goroutine"

func handoverTitle(n int) string { return fmt.Sprintf("hand-over between sessions, %d waiters", n) }
func turnsTitle(n int) string {
	return fmt.Sprintf("hand-over, %d waiters, one Mutex a session", n)
}
func deliveryTitle(n int) string { return fmt.Sprintf("Queue delivery, %d waiting", n) }
func barrierTitle(n int) string  { return fmt.Sprintf("DoubleBarrier, n = %d", n) }
