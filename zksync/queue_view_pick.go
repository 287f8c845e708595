package zksync

import "time"

// pick picks messages of the first partition that has a message that is due and not
// known to be claimed by another consumer. If it finds none, or the listing of an
// earlier partition is stale, it returns when to look again.
func (v *queueView) pick(most quota) ([]messageRef, nextWakeUp) {
	t := time.Now().UnixMilli()
	var wake nextWakeUp
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.partitions {
		if v.c.q.kind.delayed && p.key > t {
			// The partitions are in the order of their times: all later ones are not due,
			// either.
			wake.before(p.key)
			break
		}
		if ready := p.waiting.countDue(t); ready > 0 {
			n := most(ready+len(v.claimedByOthers), max(1, v.peers))
			if refs := v.pickFrom(p, n, ready); len(refs) > 0 || n <= 0 {
				return refs, wake
			}
		}
		// A message may have come into this partition, or into a new one, since the
		// listing. Messages of later partitions must not be picked before that is known.
		if p.listing.isStale() || v.c.q.kind.parsePartition != nil && v.partitionListing.isStale() {
			wake.stale = true
			return nil, wake
		}
		if it, ok := p.waiting.first(); ok {
			wake.before(it.due)
		} else if v.c.q.kind.delayed && !p.undeletable {
			wake.before(p.expiry()) // to delete the directory
		}
	}
	return nil, wake
}

// pickFrom picks at most most of the ready first messages of a partition; v.mu is held.
func (v *queueView) pickFrom(p *partition, most, ready int) []messageRef {
	var refs []messageRef
	for ; ready > 0 && len(refs) < most; ready-- {
		it, _ := p.waiting.pop()
		r := messageRef{p, it}
		name := r.claimName()
		// A stale list may have a claim that is gone. Then the message is picked: if the
		// claim still exists, the server refuses ours.
		if _, claimed := v.claimNames[name]; claimed && !v.claimListing.isStale() {
			v.claimedByOthers[r] = struct{}{}
			continue
		}
		v.picked[r] = struct{}{}
		refs = append(refs, r)
	}
	return refs
}

// before moves the time to millis, in milliseconds since 1970, if that is earlier.
func (w *nextWakeUp) before(millis int64) {
	if t := time.UnixMilli(millis); w.until.IsZero() || t.Before(w.until) {
		w.until = t
	}
}

// requeue makes picked messages wait again, in their old positions.
func (v *queueView) requeue(refs ...messageRef) {
	if len(refs) == 0 {
		return
	}
	v.mu.Lock()
	for _, r := range refs {
		delete(v.picked, r)
		// A message of a deleted directory is gone, and its name may be the name of
		// another message by now.
		if _, skipped := r.partition.skipped[r.name]; !skipped && !r.partition.recreated.Load() {
			r.partition.waiting.insert(r.queueItem)
		}
	}
	v.mu.Unlock()
	v.notify()
}

// markClaimed notes that another consumer has claimed a picked message. The message
// waits again when a list of the claims does not contain its claim.
func (v *queueView) markClaimed(r messageRef) {
	v.mu.Lock()
	delete(v.picked, r)
	if r.partition.recreated.Load() {
		v.mu.Unlock()
		return
	}
	v.claimedByOthers[r] = struct{}{}
	_, listed := v.claimNames[r.claimName()]
	// If the list has the claim, its watch reports the deletion of the claim. Otherwise
	// the claim may have been deleted before the list was read, and no event reports
	// that. The message would never be found again: list the claims once more.
	watched := listed && !v.claimListing.isStale()
	if !watched {
		v.claimListing.stopWatch()
		v.claimListing = nil
	}
	v.mu.Unlock()
	if !watched {
		v.notify()
	}
}

// forgetMessage forgets a picked message that does not exist any more.
func (v *queueView) forgetMessage(r messageRef) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.picked, r)
}

// markAbsent notes that a picked message does not exist, and that the consumer deletes
// its claim on the message.
func (v *queueView) markAbsent(r messageRef) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.absent[r] = false
}

// resolveAbsent ends markAbsent when the claim is deleted. It requeues the message if a
// message of this name has been listed in the meantime.
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

// relistPartition forgets a message that another client has removed, and makes the
// listing of its partition stale.
func (v *queueView) relistPartition(r messageRef) {
	v.mu.Lock()
	delete(v.picked, r)
	// The client may have deleted the whole directory, and created another one. Only a
	// listing has the czxid that tells the two apart.
	r.partition.listing.stopWatch()
	r.partition.listing = nil
	v.mu.Unlock()
	v.notify()
}
