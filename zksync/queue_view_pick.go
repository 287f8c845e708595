package zksync

import "time"

// pick takes messages from the first partition that has any, if no listing of an earlier
// partition is stale. It may find none. It passes over messages that other consumers are
// known to have claimed.
func (v *queueView) pick(most quota) ([]messageRef, nextWakeUp) {
	t := time.Now().UnixMilli()
	var wake nextWakeUp
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.partitions {
		if v.c.q.kind.delayed && p.key > t {
			wake.before(p.key)
			break
		}
		if ready := p.waiting.countDue(t); ready > 0 {
			n := most(ready+len(v.claimedByOthers), max(1, v.peers))
			if refs := v.pickFrom(p, n, ready); len(refs) > 0 || n <= 0 {
				return refs, wake
			}
		}
		if p.listing.isStale() || v.c.q.kind.parsePartition != nil && v.partitionListing.isStale() {
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

func (v *queueView) pickFrom(p *partition, most, ready int) []messageRef {
	var refs []messageRef
	for ; ready > 0 && len(refs) < most; ready-- {
		it, _ := p.waiting.pop()
		r := messageRef{p, it}
		name := r.claimName()
		if _, claimed := v.claimNames[name]; claimed && !v.claimListing.isStale() {
			v.claimedByOthers[r] = struct{}{}
			continue
		}
		v.picked[r] = struct{}{}
		refs = append(refs, r)
	}
	return refs
}

func (wake *nextWakeUp) before(millis int64) {
	if t := time.UnixMilli(millis); wake.until.IsZero() || t.Before(wake.until) {
		wake.until = t
	}
}

// requeue puts a message back in its place, to be taken again.
func (v *queueView) requeue(refs ...messageRef) {
	if len(refs) == 0 {
		return
	}
	v.mu.Lock()
	for _, r := range refs {
		delete(v.picked, r)
		if _, skipped := r.partition.skipped[r.name]; !skipped && !r.partition.recreated.Load() {
			r.partition.waiting.insert(r.queueItem)
		}
	}
	v.mu.Unlock()
	v.notify()
}

// markClaimed notes that another has claimed a message that was taken. It comes back when
// the claims are listed and its own is not among them: which must happen soon, if the
// last list does not have it either and is watched, so that no event will tell.
func (v *queueView) markClaimed(r messageRef) {
	v.mu.Lock()
	delete(v.picked, r)
	if r.partition.recreated.Load() {
		v.mu.Unlock()
		return
	}
	v.claimedByOthers[r] = struct{}{}
	_, listed := v.claimNames[r.claimName()]
	told := listed && !v.claimListing.isStale()
	if !told {
		v.claimListing.stopWatch()
		v.claimListing = nil
	}
	v.mu.Unlock()
	if !told {
		v.notify()
	}
}

// forgetMessage forgets a message that was taken and is not there any more.
func (v *queueView) forgetMessage(r messageRef) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.picked, r)
}

// markAbsent notes that a message that was taken is not there, and our claim on it
// about to go.
func (v *queueView) markAbsent(r messageRef) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.absent[r] = false
}

// resolveAbsent notes that the claim has gone. The message is back if it has been listed
// meanwhile.
func (v *queueView) resolveAbsent(r messageRef) {
	v.mu.Lock()
	listed := v.absent[r]
	delete(v.absent, r)
	v.mu.Unlock()
	if listed {
		v.requeue(r)
	} else {
		v.forgetMessage(r)
	}
}

// relistPartition has a partition listed again where a message in it has gone by another's
// hand: perhaps the whole partition has, and there is another of that name.
func (v *queueView) relistPartition(r messageRef) {
	v.mu.Lock()
	delete(v.picked, r)
	r.partition.listing.stopWatch()
	r.partition.listing = nil
	v.mu.Unlock()
	v.notify()
}
