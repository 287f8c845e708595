package zksync

import "time"

// take takes messages from the first partition that has any, if no listing of an earlier
// partition is stale. It may find none. It passes over messages that other consumers are
// known to have claimed.
func (v *queueView) take(most quota) ([]messageRef, nextWakeUp) {
	t := time.Now().UnixMilli()
	var wake nextWakeUp
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.partitions {
		if v.c.q.kind.delayed && p.key > t {
			wake.before(p.key)
			break
		}
		if ready := p.waiting.due(t); ready > 0 {
			n := most(ready+len(v.passed), max(1, v.peers))
			if refs := v.takeFrom(p, n, ready); len(refs) > 0 || n <= 0 {
				return refs, wake
			}
		}
		if p.listing.isStale() || v.c.q.kind.parsePartition != nil && v.listing.isStale() {
			wake.stale = true
			return nil, wake
		}
		if it, ok := p.waiting.first(); ok {
			wake.before(it.due)
		} else if v.c.q.kind.delayed && !p.undeletable {
			wake.before(p.expiry())
		}
	}
	return nil, wake
}

func (v *queueView) takeFrom(p *partition, most, ready int) []messageRef {
	var refs []messageRef
	for ; ready > 0 && len(refs) < most; ready-- {
		it, _ := p.waiting.take()
		r := messageRef{p, it}
		name := r.claimName()
		if _, claimed := v.claimed[name]; claimed && !v.claims.isStale() {
			v.passed[r] = struct{}{}
			continue
		}
		v.taken[r] = struct{}{}
		refs = append(refs, r)
	}
	return refs
}

func (wake *nextWakeUp) before(millis int64) {
	if t := time.UnixMilli(millis); wake.until.IsZero() || t.Before(wake.until) {
		wake.until = t
	}
}

// back puts a message back in its place, to be taken again.
func (v *queueView) back(refs ...messageRef) {
	if len(refs) == 0 {
		return
	}
	v.mu.Lock()
	for _, r := range refs {
		delete(v.taken, r)
		if _, skipped := r.partition.skipped[r.name]; !skipped && !r.partition.recreated.Load() {
			r.partition.waiting.put(r.queueItem)
		}
	}
	v.mu.Unlock()
	v.notify()
}

// pass notes that another has claimed a message that was taken. It comes back when
// the claims are listed and its own is not among them: which must happen soon, if the
// last list does not have it either and is watched, so that no event will tell.
func (v *queueView) pass(r messageRef) {
	v.mu.Lock()
	delete(v.taken, r)
	if r.partition.recreated.Load() {
		v.mu.Unlock()
		return
	}
	v.passed[r] = struct{}{}
	_, listed := v.claimed[r.claimName()]
	told := listed && !v.claims.isStale()
	if !told {
		v.claims.stopWatch()
		v.claims = nil
	}
	v.mu.Unlock()
	if !told {
		v.notify()
	}
}

// done forgets a message that was taken and is not there any more.
func (v *queueView) done(r messageRef) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.taken, r)
}

// dropping notes that a message that was taken is not there, and our claim on it
// about to go.
func (v *queueView) dropping(r messageRef) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.absent[r] = false
}

// dropped notes that the claim has gone. The message is back if it has been listed
// meanwhile.
func (v *queueView) dropped(r messageRef) {
	v.mu.Lock()
	listed := v.absent[r]
	delete(v.absent, r)
	v.mu.Unlock()
	if listed {
		v.back(r)
	} else {
		v.done(r)
	}
}

// suspect has a partition listed again where a message in it has gone by another's
// hand: perhaps the whole partition has, and there is another of that name.
func (v *queueView) suspect(r messageRef) {
	v.mu.Lock()
	delete(v.taken, r)
	r.partition.listing.stopWatch()
	r.partition.listing = nil
	v.mu.Unlock()
	v.notify()
}
