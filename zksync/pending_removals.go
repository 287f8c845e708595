package zksync

import "sync"

// pendingRemovals has the messages of Chan that were received, until their removal is
// known to have happened. If this value claims such a message again, it removes the
// message without another delivery.
type pendingRemovals struct {
	mu     sync.Mutex
	czxids map[string]int64 // of the messages' znodes, by the names of their claims
}

// record adds a message.
func (pr *pendingRemovals) record(cl *claim) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if pr.czxids == nil {
		pr.czxids = make(map[string]int64)
	}
	pr.czxids[cl.claimName()] = cl.czxid
}

// resolve reports whether the removal of a message is pending, and forgets it.
func (pr *pendingRemovals) resolve(r messageRef, of int64) bool {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	name := r.claimName()
	// Another czxid is another message, in a directory that was created again. It must be
	// delivered.
	czxid, ok := pr.czxids[name]
	if ok = ok && czxid == of; ok {
		delete(pr.czxids, name)
	}
	return ok
}

// forgetUnlisted forgets the messages of a partition that its listing does not have:
// they were removed.
func (pr *pendingRemovals) forgetUnlisted(p *partition, found []queueItem) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if len(pr.czxids) == 0 {
		return
	}
	// Few removals are pending, and a listing may be long: collect the names of the
	// former.
	there := make(map[string]struct{}, len(pr.czxids))
	for _, it := range found {
		name := messageRef{p, it}.claimName()
		if _, ok := pr.czxids[name]; ok {
			there[name] = struct{}{}
		}
	}
	for name := range pr.czxids {
		if _, ok := there[name]; !ok && p.hasClaim(name) {
			delete(pr.czxids, name)
		}
	}
}
