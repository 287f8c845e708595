package queue

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"time"
)

// A partitionList has the partitions of a queue as one view knows them, with the messages
// that wait. It sends no requests: messages are picked from memory.
type partitionList struct {
	cfg     *Config
	order   *orderZnode
	changed *broadcast // notified when more messages wait

	mu      sync.Mutex
	all     []*partition // in order
	listing *staleFlag   // of the queue's directory; nil if the queue has one partition
	applied *orderState  // the state whose returned messages wait
	horizon int64        // the latest time of a look, in milliseconds since 1970

	// ended has the czxids of the directories that were deleted. The next write of the order
	// znode removes their parts of the claim table, which no other consumer may know.
	ended map[int64]struct{}

	readings readingList
}

// A quota returns the number of messages to pick. free is the number of messages that
// are free as far as the view knows, and consumers the number of consumers. A nil quota picks
// one message for a Take.
type quota func(free, consumers int) int

// A selection is a list of picked messages, and the state of the order znode that says
// that they are free.
type selection struct {
	refs []messageRef
	at   *orderState
	free bool // there was a message to pick

	// passed has the messages that a claim leaves free, although the cursor goes past them;
	// see claimTable.keepFree. They are determined with the pick: a message that another
	// goroutine requeues before the claim is free, too.
	passed []messageRef

	reading *reading // of a Take
}

// apply makes the returned messages of a state wait, and adds the partition of the
// messages of Retry if it exists; l.mu is held.
func (l *partitionList) apply(st *orderState) {
	if l.applied == st {
		return
	}
	if l.applied != nil && l.applied.czxid != st.czxid {
		// Another client may have deleted the former order znode. The messages that consumers had
		// claimed are unclaimed then, and must be known before the cursor goes past them.
		l.relistAll()
	}
	l.applied = st
	maps.DeleteFunc(l.ended, func(czxid int64, _ struct{}) bool { return st.table.partitions[czxid] == nil })
	if st.table.later && !slices.ContainsFunc(l.all, func(p *partition) bool { return p.name == laterName }) {
		// These messages come first when they fall due.
		l.all = slices.Insert(l.all, 0, newPartition(l.cfg, laterName, math.MinInt64))
	}
	for _, p := range l.begun(time.Now().UnixMilli()) {
		p.apply(st.table)
	}
}

// begun returns the partitions of which the view may know messages at a time: in a DelayQueue those whose span has begun.
// So the cost of a message does not depend on the number of spans to come; l.mu is held.
func (l *partitionList) begun(now int64) []*partition {
	if !l.cfg.Kind.Delayed {
		return l.all
	}
	// A clock may be set back. The messages of a span that was listed before must not be forgotten then.
	l.horizon = max(l.horizon, now)
	n, _ := slices.BinarySearchFunc(l.all, l.horizon+1, func(p *partition, at int64) int { return cmp.Compare(p.key, at) })
	return l.all[:n]
}

// relistAll lets no message be picked before its directory is listed again; l.mu is held.
func (l *partitionList) relistAll() {
	for _, p := range l.all {
		p.listing.markStale()
		p.unlisted = true
	}
}

// stale returns the partitions whose stale listings decide which message is the next one, or all with stale listings.
func (l *partitionList) stale(st *orderState, all bool) (stale []*partition) {
	now := time.Now().UnixMilli()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.apply(st)
	for _, p := range l.begun(now) {
		// The listings of later partitions do not matter while this one has a message
		// that is due. Therefore a long queue is not listed again for each message.
		if !all && (p.expires && p.key > now || p.hasFree(st, now)) {
			break
		}
		if p.isStale() {
			stale = append(stale, p)
		}
	}
	return stale
}

// pick picks free messages of the first partition with a free message that is due. If no
// partition has such a message, it returns when to look again.
func (l *partitionList) pick(most quota, st *orderState) (selection, nextWakeUp) {
	now := time.Now().UnixMilli()
	var wake nextWakeUp
	l.mu.Lock()
	defer l.mu.Unlock()
	l.apply(st)
	for _, p := range l.all {
		if p.expires && p.key > now {
			// The partitions are in the order of their times: all later ones are not due,
			// either.
			wake.before(time.UnixMilli(p.key))
			break
		}
		if p.hasFree(st, now) {
			n := 1
			if most != nil {
				n = most(p.waiting.countDue(now), max(1, st.consumers))
			}
			passed := p.passed(st)
			// An event may have reported the deletion of the directory since hasFree: then there is
			// no message, and the directory is stale.
			if refs := p.pick(st, n, now); len(refs) > 0 || n == 0 {
				sel := selection{refs: refs, at: st, free: true, passed: passed}
				if most == nil {
					sel.reading = l.readings.add(refs[0])
				}
				return sel, wake
			}
		}
		// A message may have come into this partition, or into a new one, since the
		// listing. Messages of later partitions must not be picked before that is known.
		if p.isStale() || l.cfg.Kind.ParsePartition != nil && l.listing.isStale() {
			wake.stale = true
			break
		}
		if it, ok := p.waiting.first(); ok && it.Due > now {
			wake.before(time.UnixMilli(it.Due))
		} else if p.expires && p.empty && !p.undeletable {
			wake.before(time.UnixMilli(p.expiry())) // to delete the directory
		}
	}
	return selection{}, wake
}

// hasFree reports whether a message that is due is known to be free.
func (l *partitionList) hasFree() bool {
	now := time.Now().UnixMilli()
	st := l.order.known()
	l.mu.Lock()
	defer l.mu.Unlock()
	// Without a state, each message that waits may be free: a look will tell.
	if st != nil {
		l.apply(st)
	}
	return slices.ContainsFunc(l.begun(now), func(p *partition) bool {
		if st == nil {
			return p.waiting.countDue(now) > 0
		}
		return p.hasFree(st, now)
	})
}

// requeue makes a picked message wait again, in its old position.
func (l *partitionList) requeue(r messageRef) { l.requeueAll([]messageRef{r}) }

func (l *partitionList) requeueAll(refs []messageRef) {
	l.mu.Lock()
	for _, r := range refs {
		r.partition.requeue(r.Item)
	}
	l.mu.Unlock()
	l.changed.notify()
}

// forget forgets a picked message that does not exist any more.
func (l *partitionList) forget(r messageRef) {
	st := l.order.known()
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.partition.leave(r.Item) {
		l.changed.notify()
		return
	}
	// The removal of a message does not write the order znode. If the message was returned
	// before, the claim table still says so, and the message must not wait again.
	if st == nil || st.table.hasEntry(r.key()) {
		r.partition.gone[r.Name] = struct{}{}
	}
}

const (
	// fewMissing is the least number of missing messages after which a directory is listed again.
	fewMissing = 3
	// namesPerRead is the number of names in a listing that costs about as much as a read.
	namesPerRead = 512
)

// forgetMissing forgets a picked message that a read has not found. If other clients have removed
// many messages since the listing, the next ones may be gone, too: one listing costs less than the
// reads of all of them.
func (l *partitionList) forgetMissing(r messageRef) {
	l.forget(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	p := r.partition
	if p.missing++; p.missing >= max(fewMissing, p.waiting.len()/namesPerRead) {
		p.listing.markStale()
		p.unlisted = true
	}
}

// forgetGone removes the entries of the messages that are gone from a table, for a
// transaction that writes the order znode anyway. If short, it leaves those in the middle of ranges. It reports
// whether there are any.
func (l *partitionList) forgetGone(t *claimTable, short bool) (found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for czxid := range l.ended {
		delete(t.partitions, czxid)
	}
	for _, p := range l.begun(time.Now().UnixMilli()) {
		found = found || len(p.gone) > 0
		if claims := t.partitions[p.czxid]; short && claims != nil {
			claims.forgetEdges(slices.Sorted(maps.Keys(p.gone)))
			continue
		}
		for name := range p.gone {
			t.forget(claimKey{p.czxid, name})
		}
	}
	return found
}

// relist forgets a picked message whose claim has gone with the ledger, and lets no message of its partition be
// picked before a listing: another consumer may have the message, and if the order znode has gone, too, the
// message is free without an entry, and a cursor must not pass it.
func (l *partitionList) relist(r messageRef) {
	l.mu.Lock()
	delete(r.partition.picked, r.Name)
	r.partition.listing.markStale()
	r.partition.unlisted = true
	l.mu.Unlock()
	l.changed.notify()
}

// replace replaces the list by a listing of the queue's directory.
func (l *partitionList) replace(names []string, f *staleFlag) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listing.stopWatch()
	l.listing = f
	known := make(map[string]*partition, len(l.all))
	for _, p := range l.all {
		known[p.name] = p
	}
	l.all = nil
	if p := known[laterName]; p != nil {
		l.all = append(l.all, p)
	}
	for _, name := range names {
		if key, ok := l.cfg.Kind.ParsePartition(name); ok {
			// A known partition keeps its waiting messages and its watches: an event in
			// one directory must not make the consumer list all directories.
			p := known[name]
			if p == nil {
				p = newPartition(l.cfg, name, key)
			}
			delete(known, name)
			l.all = append(l.all, p)
		}
	}
	for name, p := range known {
		if name != laterName {
			l.end(p)
		}
	}
	slices.SortStableFunc(l.all, func(a, b *partition) int { return cmp.Compare(a.key, b.key) })
}
