package session

import (
	"sync"
	"time"
)

// The times for which a feature is not used after a server seemed to lack it.
const (
	firstPause   = time.Minute
	longestPause = time.Hour
)

// A feature is an operation that older servers lack. Such a server answers
// "unimplemented", or closes the connection without an answer, which a broken
// network does as well. So a feature is given up for a while and then tried again:
// longer each time, and without an end only for as long as it keeps failing.
type feature struct {
	mu       sync.Mutex
	suspects int // times that the feature was given up since it last worked
	until    time.Time
}

// usable says whether the operation may be sent.
func (f *feature) usable() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !time.Now().Before(f.until)
}

// works notes that a server has carried the operation out.
func (f *feature) works() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.suspects, f.until = 0, time.Time{}
}

// suspect notes that servers seem to close connections because of the operation.
func (f *feature) suspect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until = time.Now().Add(min(firstPause<<min(f.suspects, 10), longestPause))
	f.suspects++
}

// lacking notes that a server has said that it does not know the operation.
func (f *feature) lacking() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until = time.Now().Add(longestPause)
}
