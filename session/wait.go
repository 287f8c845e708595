package session

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// firstReport is the time that a call may wait before the reason is logged. Later reports
// follow after twice the time each, and at least every maxReport.
const (
	firstReport = 3 * time.Second
	maxReport   = 5 * time.Minute
)

// A Wait is a call that waits for another client, for example for a lock that another
// client holds. The Manager logs the reason after three seconds and then at intervals
// that grow to five minutes. Packages that build on this package use it.
type Wait struct {
	m        *shared
	op, path string
	began    time.Duration // since epoch
	reason   func(context.Context) error

	place *list.Element // in waits.all

	mu    sync.Mutex
	level zapcore.Level // of the lines in the log
	timer *time.Timer   // nil if nothing is logged
	pause time.Duration
	ended bool
}

// StartWait starts a wait of the operation op on a path, until Stop. The lines in the log have the level
// Warn.
//
// reason returns the thing that the call waits for. reason may send requests, bounded by
// its context. If the context has ended, reason returns the facts that are known. Several
// goroutines may call reason at the same time, and reason must not call the Wait.
func (m *shared) StartWait(op, path string, reason func(context.Context) error) *Wait {
	return m.StartWaitAt(zap.WarnLevel, op, path, reason)
}

// StartWaitAt is StartWait with the level of the lines in the log, for example zap.InfoLevel for a
// candidate, which waits for as long as another one leads.
func (m *shared) StartWaitAt(level zapcore.Level, op, path string, reason func(context.Context) error) *Wait {
	w := m.StartIdleWait(op, path, reason)
	if m.cfg.log.Core().Enabled(level) {
		w.mu.Lock() // report reads timer
		w.level, w.timer = level, time.AfterFunc(firstReport, w.report)
		w.mu.Unlock()
	}
	return w
}

// StartIdleWait is like StartWait, for a wait that is no sign of a fault, regardless of
// its length, for example for a message while a queue is empty. The reason is not logged.
func (m *shared) StartIdleWait(op, path string, reason func(context.Context) error) *Wait {
	w := &Wait{m: m, op: op, path: path, began: time.Since(epoch), reason: reason, pause: firstReport}
	m.waits.add(w)
	return w
}

// Stop ends the wait. It may be called more than once, and on nil.
func (w *Wait) Stop() {
	if w != nil {
		w.stop(false)
	}
}

func (w *Wait) stop(cancelled bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.ended = true
	w.m.waits.remove(w)
	if ended := w.m.cfg.observer.WaitEnded; ended != nil {
		ended(WaitEnded{w.op, w.path, time.Since(epoch) - w.began, cancelled})
	}
	if w.timer != nil {
		w.timer.Stop()
	}
}

// Cancelled ends a wait whose ctx has ended, and returns CancelledWaiting with the reason
// for the wait.
func (w *Wait) Cancelled(ctx context.Context) error {
	w.stop(true)
	return CancelledWaiting(ctx, fmt.Errorf("waiting for %v %w", roundTime(time.Since(epoch)-w.began), w.reasonNow(ctx)))
}

// reasonNow returns the reason, and during an outage also the reason of the outage.
func (w *Wait) reasonNow(ctx context.Context) error {
	err := w.reason(ctx)
	// In an outage no event arrives, so the wait may be over already, and the outage alone
	// keeps the call waiting.
	if outage := w.m.outage(); outage != nil {
		err = fmt.Errorf("%w; also %w", err, outage)
	}
	return err
}

// report logs the reason, and starts the timer for the next report.
func (w *Wait) report() {
	waits := &w.m.waits
	if !waits.enter() {
		return // the Manager is being closed
	}
	defer waits.running.Done()
	ctx, cancel := context.WithTimeout(w.m.ctx, probeTime)
	defer cancel()
	w.mu.Lock()
	ended, level := w.ended, w.level
	w.mu.Unlock()
	if ended {
		return
	}
	if log := waits.limit.allow(w.m.cfg.log, level); log != nil {
		err := w.reasonNow(ctx)
		log.Log(level, "a call waited", zap.String("operation", w.op), zap.String("path", w.path),
			zap.Duration("waited", roundTime(time.Since(epoch)-w.began)), zap.String("reason", "waiting "+err.Error()))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// stop may have run during the look-up. It has stopped the timer, which must not start
	// again.
	if !w.ended {
		w.pause = min(2*w.pause, maxReport)
		w.timer.Reset(w.pause)
	}
}

// waits holds all waits of a Manager.
type waits struct {
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup // for running reports
	all     list.List      // of *Wait, the longest wait first
	// A process in which thousands of calls wait for the same thing would write thousands
	// of equal lines, and send as many requests to find the reason.
	limit lineLimit
}

func (v *waits) add(w *Wait) {
	v.mu.Lock()
	defer v.mu.Unlock()
	w.place = v.all.PushBack(w)
}

func (v *waits) remove(w *Wait) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all.Remove(w.place)
}

// WaitStats is a call that waits.
type WaitStats struct {
	Op    string    `json:"op"`
	Path  string    `json:"path"`
	Since time.Time `json:"since"`
}

// maxWaitStats is the greatest length of Stats.Waits.
const maxWaitStats = 100

// list returns the longest waits, and the number of all waits.
func (v *waits) list() (all []WaitStats, count int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for e := v.all.Front(); e != nil && len(all) < maxWaitStats; e = e.Next() {
		w := e.Value.(*Wait)
		all = append(all, WaitStats{w.op, w.path, epoch.Add(w.began)})
	}
	return all, v.all.Len()
}

// enter counts a report as running. It returns false if the Manager is being closed.
func (v *waits) enter() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	// Under mu, because Add must not run at the same time as Wait.
	if !v.closed {
		v.running.Add(1)
	}
	return !v.closed
}

// close waits until no report is running, and prevents further reports.
func (v *waits) close() {
	v.mu.Lock()
	v.closed = true
	v.mu.Unlock()
	// No report begins after closed is set, so the number of running reports only falls.
	v.running.Wait()
}
