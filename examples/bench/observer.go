package main

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// newObserved is the toolkit with an observer that counts everything, as an adapter to
// metrics does. It takes part in the rows about the observer alone.
func newObserved(servers string) *toolkit {
	t := newToolkit(servers)
	t.called, t.opts = observed, []session.Option{session.WithObserver(newTally().observer())}
	for row := range t.rowFuncs {
		if !observerRows[row] {
			delete(t.rowFuncs, row)
		}
	}
	return t
}

// observerRows are the rows in which the toolkit runs with and without an observer.
var observerRows = map[string]bool{"observer read": true, "observer lock": true, "observer queue": true}

// A tally counts events.
type tally struct{ events, nanoseconds atomic.Int64 }

func newTally() *tally { return &tally{} }

func (c *tally) observer() session.Observer {
	count := func() { c.events.Add(1) }
	return session.Observer{
		StateChanged: func(session.StateChange) { count() },
		RequestDone:  func(r session.RequestDone) { count(); c.nanoseconds.Add(int64(r.Latency)) },
		WaitEnded:    func(w session.WaitEnded) { count(); c.nanoseconds.Add(int64(w.Duration)) },
		HoldStarted:  func(session.HoldStarted) { count() },
		HoldEnded:    func(h session.HoldEnded) { count(); c.nanoseconds.Add(int64(h.Duration)) },
		Delivered:    func(session.Delivered) { count() },
		QueueLength:  func(session.QueueLength) { count() },
	}
}

// allocated is metered, with the allocations of this process for an operation.
func (t *toolkit) allocated(ops int, fn func() error) (sample, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, err := t.metered(ops, fn)
	runtime.ReadMemStats(&after)
	s.Extra["allocations"] = float64(after.Mallocs-before.Mallocs) / float64(ops)
	return s, err
}

func (t *toolkit) observedRead(ctx context.Context, j job) (sample, error) {
	m, err := t.one(ctx)
	if err != nil {
		return sample{}, err
	}
	s, err := m.Session(ctx)
	if err != nil {
		return sample{}, err
	}
	return t.allocated(j.Ops, func() error {
		for range j.Ops {
			if _, _, err := s.Exists(ctx, root); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *toolkit) observedLock(ctx context.Context, j job) (sample, error) {
	m, err := t.one(ctx)
	if err != nil {
		return sample{}, err
	}
	mu := zksync.NewMutex(m, j.Path)
	if err := again(ctx, mu, 1); err != nil { // makes the directory
		return sample{}, err
	}
	return t.allocated(j.Ops, func() error { return again(ctx, mu, j.Ops) })
}

// observedQueue puts messages and receives them.
func (t *toolkit) observedQueue(ctx context.Context, j job) (sample, error) {
	m, err := t.one(ctx)
	if err != nil {
		return sample{}, err
	}
	q := zksync.NewQueue(m, j.Path)
	all := make([][]byte, j.Ops)
	for i := range all {
		all[i] = message
	}
	s, err := t.allocated(j.Ops, func() error {
		if err := q.PutAll(ctx, all...); err != nil {
			return err
		}
		messages := q.Chan()
		for range j.Ops {
			select {
			case _, ok := <-messages:
				if !ok {
					return q.Err()
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	return s, q.Close()
}
