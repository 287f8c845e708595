package enumeration_test

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A case takes milliseconds. A case never ends if a goroutine spins or waits for a sync.Mutex, so that
// the time of its bubble stops. It counts as such a case when the process has used maxProcessorTime
// since the case began: a process that other processes keep from running gets its time. If all cases
// wait for mutexes, nothing uses processor time, and maxRealTime ends them. Such a goroutine cannot be
// ended. The run gives up the worker of the case and starts another worker, and ends after maxHung such
// cases.
const (
	maxProcessorTime = 30 * time.Second
	maxRealTime      = 3 * time.Minute
	maxHung          = 3
)

// A moment is a time of the clock, and the processor time that the process had used by then.
type moment struct {
	clock     time.Time
	processor time.Duration
}

func present() moment {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return moment{time.Now(), time.Duration(used.Utime.Nano() + used.Stime.Nano())}
}

// hangs reports whether a case that began at m never ends.
func (m moment) hangs(now moment) bool {
	return now.processor-m.processor > maxProcessorTime || now.clock.Sub(m.clock) > maxRealTime
}

// workers run cases on all processors.
type workers struct {
	mu      sync.Mutex
	running map[*faultCase]moment
	hung    int
	active  int           // workers, including the ones given up
	spare   chan struct{} // receives when the run gives up a worker
	giveUp  func()        // reports when only cases that hang are left
}

// begin records that a case runs until end is called.
func (w *workers) begin(c faultCase) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running == nil {
		w.running = make(map[*faultCase]moment)
	}
	w.running[&c] = present()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.running, &c)
	}
}

// guard watches for cases that hang, until stop is called. It calls hung for each, and giveUp
// before it ends the process.
func (w *workers) guard(hung func(c faultCase), giveUp func()) (stop func()) {
	w.giveUp = giveUp
	done := make(chan struct{})
	go func() {
		look := time.NewTicker(time.Second)
		defer look.Stop()
		for {
			select {
			case <-done:
				return
			case <-look.C:
			}
			for _, c := range w.overdue() {
				if hung == nil {
					fmt.Printf("%v has not ended after %v of processor time\n", c, maxProcessorTime)
					_ = pprof.Lookup("goroutine").WriteTo(os.Stdout, 2)
					os.Exit(1)
				}
				hung(c)
				w.replace()
			}
		}
	}()
	return func() { close(done) }
}

// overdue removes and returns the cases that have run for too long.
func (w *workers) overdue() (list []faultCase) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := present()
	for c, since := range w.running {
		if since.hangs(now) {
			delete(w.running, c)
			list = append(list, *c)
		}
	}
	return list
}

// replace starts a spare worker for a worker whose case hangs.
func (w *workers) replace() {
	w.mu.Lock()
	w.hung++
	w.active++
	last := w.hung >= maxHung || *briefFlag
	w.mu.Unlock()
	if last {
		w.exit()
	}
	w.spare <- struct{}{}
}

// exit reports and ends the process, because tests that hang cannot be ended in another way.
func (w *workers) exit() {
	w.giveUp()
	os.Exit(1)
}

// run calls work on every processor until all calls have returned. It calls work again for every
// worker that was given up.
func (w *workers) run(t *testing.T, phase string, work func(t *testing.T)) {
	w.spare = make(chan struct{}, maxHung)
	n := runtime.GOMAXPROCS(0)
	w.active = n
	t.Run(phase, func(t *testing.T) {
		for i := range n + maxHung {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				if i >= n {
					if _, ok := <-w.spare; !ok {
						return
					}
				}
				// Also if a case ends the test, as a data race does: the spare workers wait for the last one.
				defer w.end()
				work(t)
			})
		}
	})
}

// end counts the end of a worker. The last one lets the spare workers end.
func (w *workers) end() {
	w.mu.Lock()
	w.active--
	active, hung := w.active, w.hung
	w.mu.Unlock()
	switch {
	case active > hung:
	case hung > 0:
		w.exit()
	default:
		close(w.spare)
	}
}

// A printer prints a report without a test.
type printer struct{}

func (printer) Logf(format string, args ...any)   { fmt.Printf(format+"\n", args...) }
func (printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (printer) FailNow()                          {}
