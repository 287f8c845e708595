package session

import (
	"math"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// The clocks of clock_gettime(2). Both clocks count from boot. Only the first clock
// counts while the machine is suspended.
const (
	clockBoottime  = 7
	clockMonotonic = 1
)

// newClock returns a clock that compares the two clocks of the kernel. A wall clock that
// is set forward has no effect.
func newClock() clock {
	if _, ok := readClock(clockBoottime); !ok {
		return wallDrift() // a kernel before 2.6.39, or a sandbox that denies the call
	}
	return kernelClock(func(id uintptr) time.Duration {
		t, _ := readClock(id)
		return t
	})
}

// kernelClock returns a clock that compares the two clocks that read returns.
func kernelClock(read func(id uintptr) time.Duration) clock {
	var exact atomic.Int64     // an earlier reading
	exact.Store(math.MinInt64) // no reading is near it; in a time namespace, readings may be negative
	return func() time.Duration {
		// The scheduler may stop the process between the calls. In this order, that makes a reading
		// too great, and so a reading that is near an exact one is exact. Each call of the kernel counts:
		// a Lock and its Unlock read the clock four times.
		monotonic := read(clockMonotonic)
		if d := read(clockBoottime) - monotonic; d < time.Duration(exact.Load())+exactEnough {
			return d
		}
		best, closest := time.Duration(0), time.Duration(-1)
		for range 5 {
			before := read(clockMonotonic)
			boot := read(clockBoottime)
			if d := read(clockMonotonic) - before; closest < 0 || d < closest {
				best, closest = boot-before, d
			}
			if closest < exactEnough {
				exact.Store(int64(best))
				break
			}
		}
		return best
	}
}

// exactEnough is far below a twentieth of any session timeout.
const exactEnough = 100 * time.Microsecond

func readClock(id uintptr) (time.Duration, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano()), errno == 0
}
