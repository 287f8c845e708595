package session

import (
	"sync"
	"time"
)

// The first and the longest time for which a feature is not used after a server seemed to
// lack it.
const (
	firstPause   = time.Minute
	longestPause = time.Hour
)

// A feature is an operation that older servers lack. Such a server answers
// "unimplemented", or closes the connection without an answer. A broken network does the
// latter as well. So a feature that seems to be missing is disabled for a while and then
// tried again. The pauses grow, and end when the feature works.
type feature struct {
	mu       sync.Mutex
	worked   bool // the last answer shows that a server knows the operation
	suspects int  // number of times that the feature was disabled since it last worked
	until    time.Time
}

// usable reports whether the operation may be sent.
func (f *feature) usable() bool { return f.pause() <= 0 }

// pause returns the time until the operation may be sent, if it is positive.
func (f *feature) pause() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Until(f.until)
}

// proven reports whether a server is known to carry out the operation.
func (f *feature) proven() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.worked
}

// works records that a server has carried out the operation.
func (f *feature) works() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.worked, f.suspects, f.until = true, 0, time.Time{}
}

// suspect records that servers seem to close connections because of the operation.
func (f *feature) suspect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	// Only a success ends the doubling: a network that breaks connections now and then must
	// not disable the operation for long.
	f.worked, f.until = false, time.Now().Add(min(firstPause<<min(f.suspects, 10), longestPause))
	f.suspects++
}

// refused records that a server has refused the operation for now. It is not sent for the time of pause.
func (f *feature) refused(pause time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until = time.Now().Add(pause)
}

// lacking records that a server answered that it does not know the operation.
func (f *feature) lacking() {
	f.mu.Lock()
	defer f.mu.Unlock()
	// Not for ever: the server may be upgraded, or the session may move to another server.
	f.worked, f.until = false, time.Now().Add(longestPause)
}
