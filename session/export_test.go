package session

import "time"

// WithSuspension sets the function that returns for how long the machine has been suspended.
func WithSuspension(suspended func() time.Duration) Option {
	return func(c *config) error {
		c.suspension = suspended
		return nil
	}
}

// InboxQueued returns the number of reads in the queues of an Inbox, with the reads that were stopped.
func InboxQueued(in *Inbox) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.firsts.reads) + len(in.repeats.reads)
}

// PinWatch keeps the watch for the data at path as a read does that has not returned.
func PinWatch(s *Session, path string) { s.hub.pin(watchKey{path, dataWatch}) }
