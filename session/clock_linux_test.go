package session

import (
	"testing"
	"time"
)

// A clock counts each suspension of the machine, whenever it happens, and not the time for which the
// scheduler stops the process between two calls of the kernel. In a time namespace it may begin below zero.
func TestKernelClock(t *testing.T) {
	for at := range 12 { // the call of the kernel that the pause precedes
		for _, suspended := range []bool{false, true} {
			for _, begin := range []time.Duration{time.Minute, 0, -time.Hour} {
				readBesideAPause(t, at, suspended, begin)
			}
		}
	}
}

// readBesideAPause reads a clock whose process pauses once, before a call of the kernel.
func readBesideAPause(t *testing.T, at int, suspended bool, begin time.Duration) {
	const pause = 10 * time.Second
	calls, monotonic, sleep := 0, 2*time.Hour, begin
	c := kernelClock(func(id uintptr) time.Duration {
		switch {
		case calls == at && suspended:
			sleep += pause
		case calls == at:
			monotonic += pause
		}
		calls++
		monotonic += time.Microsecond
		if id == clockBoottime {
			return monotonic + sleep
		}
		return monotonic
	})
	for range 4 {
		before := sleep
		if got := c(); got < before || got > sleep+exactEnough {
			t.Errorf("pause before call %d, suspended %v: %v, want %v to %v", at, suspended, got, before, sleep)
		}
	}
	if calls > 20 {
		t.Errorf("pause before call %d, suspended %v: %d calls for 4 readings", at, suspended, calls)
	}
}
