package queue

import "sync"

// maxRemoving limits the messages of lost sessions that a consumer remembers.
const maxRemoving = 4096

// removing has the messages of Chan that were received and are being removed. It outlives
// the sessions: the receiver has such a message already.
type removing struct {
	mu     sync.Mutex
	czxids map[claimKey]int64 // of the messages
}

// has reports whether a message is being removed.
func (r *removing) has(m message, czxid int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	// After the counter of a directory is spent, another message may have the same name.
	known, ok := r.czxids[m.key()]
	return ok && known == czxid
}

// add notes that a message was received and is being removed.
func (r *removing) add(m message, czxid int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.czxids == nil || len(r.czxids) >= maxRemoving {
		r.czxids = make(map[claimKey]int64) // others have removed the former messages since
	}
	r.czxids[m.key()] = czxid
}

// end notes that a message is gone.
func (r *removing) end(m message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.czxids, m.key())
}
