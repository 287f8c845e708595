package zksync

import "time"

// take takes messages from the first lane that has any, if no listing of an earlier
// lane is stale. It may find none. It passes over messages that other consumers are
// known to have claimed.
func (o *outlook) take(most quota) ([]ref, void) {
	t := time.Now().UnixMilli()
	var v void
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.lanes {
		if o.c.q.kind.delayed && l.key > t {
			v.before(l.key)
			break
		}
		if ready := l.waiting.due(t); ready > 0 {
			n := most(ready+len(o.passed), max(1, o.peers))
			if refs := o.takeFrom(l, n, ready); len(refs) > 0 || n <= 0 {
				return refs, v
			}
		}
		if l.listing.isTripped() || o.c.q.kind.lane != nil && o.listing.isTripped() {
			v.stale = true
			return nil, v
		}
		if it, ok := l.waiting.first(); ok {
			v.before(it.due)
		} else if o.c.q.kind.delayed && !l.kept {
			v.before(l.over())
		}
	}
	return nil, v
}

func (o *outlook) takeFrom(l *lane, most, ready int) []ref {
	var refs []ref
	for ; ready > 0 && len(refs) < most; ready-- {
		it, _ := l.waiting.take()
		r := ref{l, it}
		name := r.claimName()
		if _, claimed := o.claimed[name]; claimed && !o.claims.isTripped() {
			o.passed[r] = struct{}{}
			continue
		}
		o.taken[r] = struct{}{}
		refs = append(refs, r)
	}
	return refs
}

func (v *void) before(millis int64) {
	if t := time.UnixMilli(millis); v.until.IsZero() || t.Before(v.until) {
		v.until = t
	}
}

// back puts a message back in its place, to be taken again.
func (o *outlook) back(refs ...ref) {
	if len(refs) == 0 {
		return
	}
	o.mu.Lock()
	for _, r := range refs {
		delete(o.taken, r)
		if _, skipped := r.lane.skipped[r.name]; !skipped && !r.lane.remade.Load() {
			r.lane.waiting.put(r.item)
		}
	}
	o.mu.Unlock()
	o.ring()
}

// pass notes that another has claimed a message that was taken. It comes back when
// the claims are listed and its own is not among them: which must happen soon, if the
// last list does not have it either and is watched, so that no event will tell.
func (o *outlook) pass(r ref) {
	o.mu.Lock()
	delete(o.taken, r)
	if r.lane.remade.Load() {
		o.mu.Unlock()
		return
	}
	o.passed[r] = struct{}{}
	_, listed := o.claimed[r.claimName()]
	told := listed && !o.claims.isTripped()
	if !told {
		o.claims.remove()
		o.claims = nil
	}
	o.mu.Unlock()
	if !told {
		o.ring()
	}
}

// done forgets a message that was taken and is not there any more.
func (o *outlook) done(r ref) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.taken, r)
}

// dropping notes that a message that was taken is not there, and our claim on it
// about to go.
func (o *outlook) dropping(r ref) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.absent[r] = false
}

// dropped notes that the claim has gone. The message is back if it has been listed
// meanwhile.
func (o *outlook) dropped(r ref) {
	o.mu.Lock()
	listed := o.absent[r]
	delete(o.absent, r)
	o.mu.Unlock()
	if listed {
		o.back(r)
	} else {
		o.done(r)
	}
}

// suspect has a lane listed again where a message in it has gone by another's
// hand: perhaps the whole lane has, and there is another of that name.
func (o *outlook) suspect(r ref) {
	o.mu.Lock()
	delete(o.taken, r)
	r.lane.listing.remove()
	r.lane.listing = nil
	o.mu.Unlock()
	o.ring()
}
