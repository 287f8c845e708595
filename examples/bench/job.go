package main

import (
	"context"
	"errors"
	"time"
)

// A job is one measurement of one row. Each row reads the fields that it needs.
type job struct {
	Row      string
	Path     string // fresh for every run
	Ops      int    // how many operations the time is for
	Clients  int    // goroutines or threads
	Sessions int    // that they are spread over
	Backlog  int    // messages that wait before the clock starts
}

// A sample is the time and the other costs of one run of a job.
type sample struct {
	Ops     int           `json:"ops"`
	Elapsed time.Duration `json:"elapsed_ns"`
	// Extra holds the other costs: requests, bytes, heap.
	Extra map[string]float64 `json:"extra,omitempty"`
}

func (s sample) perOp() time.Duration { return s.Elapsed / time.Duration(max(s.Ops, 1)) }

// errNoSuchRow says that a contender has nothing to compare in this row.
var errNoSuchRow = errors.New("has no such thing")

// A contender is one library, with its own sessions to the same server.
type contender interface {
	name() string
	run(ctx context.Context, j job) (sample, error)
	close() error
}

// rowFuncs is a contender's work by the name of the row.
type rowFuncs map[string]func(context.Context, job) (sample, error)

func (f rowFuncs) run(ctx context.Context, j job) (sample, error) {
	fn := f[j.Row]
	if fn == nil {
		return sample{}, errNoSuchRow
	}
	return fn(ctx, j)
}

// timed runs fn and tells how long it took for ops operations.
func timed(ops int, fn func() error) (sample, error) {
	began := time.Now()
	err := fn()
	return sample{Ops: ops, Elapsed: time.Since(began)}, err
}
