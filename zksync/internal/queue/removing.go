package queue

import "sync"

// maxRemoving limits the messages that a consumer remembers.
const maxRemoving = 4096

// removing has the messages of Chan that were received and are being removed. It outlives
// the sessions: the receiver has such a message already. Messages that cannot be removed stay,
// and so do messages of lost sessions that other consumers have removed since.
type removing struct {
	mu       sync.Mutex
	received map[claimKey]receipt
	count    int // of the receipts so far
}

// A receipt is the last one of a message.
type receipt struct {
	czxid int64 // of the message
	count int   // of the receipts until then
}

// has reports whether a message is being removed.
func (r *removing) has(m message, czxid int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	// After the counter of a directory is spent, another message may have the same name.
	known, ok := r.received[m.key()]
	return ok && known.czxid == czxid
}

// add notes that a message was received and is being removed. Beyond maxRemoving it forgets the
// message whose last receipt is the oldest.
func (r *removing) add(m message, czxid int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.received == nil {
		r.received = make(map[claimKey]receipt)
	}
	r.count++
	r.received[m.key()] = receipt{czxid, r.count}
	if len(r.received) <= maxRemoving {
		return
	}
	var oldest claimKey
	least := r.count
	for k, known := range r.received {
		if known.count < least {
			oldest, least = k, known.count
		}
	}
	delete(r.received, oldest)
}

// end notes that a message is gone.
func (r *removing) end(m message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.received, m.key())
}
