package session

import (
	"time"
	"unsafe"
)

// suspended is the time d after t at which a machine wakes up that slept for
// all of it: only the wall clock has gone on.
func suspended(t time.Time, d time.Duration) time.Time {
	later := t.Add(d)
	// The second word of a Time with a monotonic reading is that reading.
	*(*int64)(unsafe.Add(unsafe.Pointer(&later), 8)) -= int64(d)
	return later
}
