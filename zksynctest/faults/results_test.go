package faults

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// results collects the outcomes of all scenarios of this process.
var results table

// A table has one row for each scenario and size.
type table struct {
	mu   sync.Mutex
	rows []*row
}

type row struct {
	scenario string
	size     size
	outcomes []outcome
}

func (t *table) add(scenario string, size size, o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.rows, func(r *row) bool { return r.scenario == scenario && r.size == size })
	if i < 0 {
		t.rows = append(t.rows, &row{scenario: scenario, size: size})
		i = len(t.rows) - 1
	}
	t.rows[i].outcomes = append(t.rows[i].outcomes, o)
}

// print writes the table, unless it is empty.
func (t *table) print(w io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\nThe margin is the time from the end of A's held context to B's grant; negative: two holders.\n\n")
	fmt.Fprintf(w, "| %-46s | %5s | %4s | %4s | %5s | %8s | %10s | %13s | %10s | %14s |\n", "scenario", "tick", "T", "runs", "holds",
		"overlaps", "min margin", "median margin", "max margin", "fault to loss")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, r := range t.rows {
		fmt.Fprintln(w, r.line())
	}
}

func (r *row) line() string {
	var margins, losses []time.Duration
	overlaps := 0
	for _, o := range r.outcomes {
		if o.ended.IsZero() {
			continue
		}
		margins = append(margins, o.margin())
		losses = append(losses, o.ended.Sub(o.fault))
		if o.margin() < 0 {
			overlaps++
		}
	}
	slices.Sort(margins)
	slices.Sort(losses)
	return fmt.Sprintf("| %-46s | %5v | %4v | %4d | %5d | %8d | %10s | %13s | %10s | %14s |", r.scenario, r.size.tick, r.size.timeout,
		len(r.outcomes), len(margins), overlaps, quantile(margins, 0), quantile(margins, 0.5), quantile(margins, 1),
		quantile(losses, 0)+" to "+quantile(losses, 1))
}

// quantile returns a quantile of sorted durations, in seconds.
func quantile(sorted []time.Duration, q float64) string {
	if len(sorted) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f s", sorted[int(q*float64(len(sorted)-1))].Seconds())
}
