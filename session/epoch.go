package session

import "time"

// epoch is the moment from which waits and leases count time. A Duration takes a third of
// the memory of a Time, and a process may have tens of thousands of them.
var epoch = time.Now()

// roundTime rounds a duration for readers.
func roundTime(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
