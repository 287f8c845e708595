package session

import (
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
	return func() time.Duration {
		// The scheduler may stop the process between the calls. A reading is exact if the
		// scheduler did not do so.
		best, closest := time.Duration(0), time.Duration(-1)
		for range 5 {
			before, _ := readClock(clockMonotonic)
			boot, _ := readClock(clockBoottime)
			after, _ := readClock(clockMonotonic)
			if d := after - before; closest < 0 || d < closest {
				best, closest = boot-after, d
			}
			if closest < exactEnough {
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
