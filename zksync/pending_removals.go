package zksync

import "sync"

// pendingRemovals are the messages that were received and whose removal is not known to have
// come about, by their names, with the czxids of their znodes. They are removed
// without being delivered again, if we get hold of them again.
type pendingRemovals struct {
	mu     sync.Mutex
	czxids map[string]int64
}

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
	czxid, ok := pr.czxids[name]
	if ok = ok && czxid == of; ok {
		delete(pr.czxids, name)
	}
	return ok
}

// forgetUnlisted forgets the messages of a partition that are not in its listing, because they have
// been removed.
func (pr *pendingRemovals) forgetUnlisted(p *partition, found []queueItem) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if len(pr.czxids) == 0 {
		return
	}
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
