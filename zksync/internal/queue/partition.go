package queue

import (
	"maps"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A partition is a directory of messages, as a view knows it. Another directory of the
// same name is another partition: it has another czxid. The mutex of the partitionList
// guards it.
//
//	listed ---> waiting ---> picked ---> gone
//	               ^           |
//	               +-----------+------> skipped
type partition struct {
	name     string // in the queue's directory; empty for that itself
	dir      string // its path
	key      int64
	parse    func(name string) (Item, bool)
	anyOrder bool // see Kind
	expires  bool // its directory is deleted after its time

	firstListed int64 // in milliseconds since 1970
	czxid       int64 // of the directory; 0 before the first listing
	waiting     backlog
	others      int // the messages of the listing that other consumers have claimed
	missing     int // the messages of the listing that a read has not found
	listing     *staleFlag
	hasLeast    bool                // the listing has messages that go by the cursor
	least       int32               // the first number of these messages
	unlisted    bool                // the waiting messages are not the free ones: none is picked before the next listing
	picked      map[string]Item     // messages that a Take has picked or this consumer has claimed, by name
	skipped     map[string]Item     // messages that cannot be read or removed
	gone        map[string]struct{} // messages that are gone, and may have an entry in the claim table
	empty       bool                // the directory had no children at its listing
	undeletable bool                // an attempt to delete the directory failed since its listing

	// Another directory may have the same name, and its messages the names of former ones. The
	// ledgers tell the two apart if they are below the directory: they are deleted with it.
	holdsLedgers bool
	dirWatch     *session.Watch
	recreated    atomic.Bool   // the directory was deleted, and there may be another one
	tracked      atomic.Bool   // dirWatch reports the deletion of the directory
	seenOn       atomic.Uint64 // the last connection on which the directory was seen
}

// newPartition returns the partition of a directory that was listed under a name.
func newPartition(cfg *Config, name string, key int64) *partition {
	k := cfg.Kind
	p := &partition{
		name: name, dir: cfg.dirOf(name), key: key, parse: k.Parse, anyOrder: k.anyOrder, firstListed: time.Now().UnixMilli(),
		holdsLedgers: name == "" && !k.ClaimsBeside,
		picked:       make(map[string]Item), skipped: make(map[string]Item), gone: make(map[string]struct{}),
	}
	switch {
	case name == laterName:
		p.parse, p.anyOrder = parseLater, true
	case name != "":
		p.expires = k.Delayed
	}
	return p
}

// mayBeRecreated reports whether a name in the directory may stand for another message by
// now: the directory was deleted, or its deletion would go unnoticed.
func (p *partition) mayBeRecreated() bool {
	return p.recreated.Load() || !p.holdsLedgers && !p.tracked.Load()
}

// isStale reports whether the directory must be listed before a message of it is picked,
// unless messages are known to wait.
func (p *partition) isStale() bool { return p.listing.isStale() || p.mayBeRecreated() }

// partitionAge is how long a partition is kept after its span of time, for producers
// whose clocks are behind ours.
const partitionAge = time.Minute

// expiry returns when to delete the directory of a partition of a DelayQueue, in
// milliseconds since 1970.
func (p *partition) expiry() int64 {
	// A partition may appear after its span: the clock of the producer is behind, or its
	// Put has waited for a connection. The producer puts the message in a second request,
	// so the partition stays for partitionAge from its first listing on.
	return max(p.key+partitionWidth.Milliseconds(), p.firstListed) + partitionAge.Milliseconds()
}

// replace replaces the waiting messages by a listing.
func (p *partition) replace(found []Item, f *staleFlag) {
	// Only listed names stay skipped: the map must not grow for as long as the value lives.
	skipped := make(map[string]Item)
	waiting := found[:0]
	p.hasLeast = false
	for _, it := range found {
		if p.ref(it).byCursor() && (!p.hasLeast || znode.Earlier(it.Seq, p.least)) {
			p.hasLeast, p.least = true, it.Seq
		}
		// This consumer has the picked messages in hand, and would skip the skipped ones again.
		if _, ok := p.skipped[it.Name]; ok {
			skipped[it.Name] = it
		} else if _, ok := p.picked[it.Name]; !ok {
			waiting = append(waiting, it)
		}
	}
	p.skipped, p.others, p.missing = skipped, 0, 0
	p.waiting.replace(waiting)
	p.listing.stopWatch()
	p.listing, p.unlisted = f, false
}

// noteGone notes the messages as gone that a table says were returned and that a later listing does not
// have. Otherwise their entries would stay until claims have read all of them.
func (p *partition) noteGone(found []Item, t *claimTable) {
	claims := t.partitions[p.czxid]
	if claims == nil {
		return
	}
	gone := make(map[string]struct{})
	for name, e := range claims.entries {
		if it, ok := p.parse(name); ok && e.state == returned && !p.ref(it).mayRepeat() {
			gone[name] = struct{}{}
		}
	}
	for _, it := range found {
		delete(gone, it.Name)
	}
	maps.Copy(p.gone, gone)
}

// forgetCursor removes the cursor from the part of a table if no message exists up to the cursor. Later messages have
// greater numbers. A listing is as good as a new one while no event says that it is stale: the event of a message that
// was claimed since the listing comes before the table that has this claim.
func (p *partition) forgetCursor(claims *partitionClaims) {
	if !p.isStale() && (!p.hasLeast || znode.Earlier(claims.cursor, p.least)) {
		claims.hasCursor = false
	}
}

// apply makes the messages wait that a table says were returned, and forgets the messages
// that are gone from the table, too.
func (p *partition) apply(t *claimTable) {
	maps.DeleteFunc(p.gone, func(name string, _ struct{}) bool { return !t.hasEntry(claimKey{p.czxid, name}) })
	claims := t.partitions[p.czxid]
	if claims == nil {
		return
	}
	for name, e := range claims.entries {
		if _, gone := p.gone[name]; e.state != returned || gone {
			continue
		}
		if it, ok := p.parse(name); ok {
			p.insert(it)
		}
	}
}

// insert makes a message wait, unless it is picked or skipped.
func (p *partition) insert(it Item) {
	_, picked := p.picked[it.Name]
	_, skipped := p.skipped[it.Name]
	// A message of a deleted directory is gone, and its name may be the name of another
	// message by now.
	if !picked && !skipped && !p.recreated.Load() {
		p.waiting.insert(it)
	}
}

// leave ends the pick of a message that will not wait again, and reports whether the directory must be listed again. A
// listing meanwhile has left a later message of the same name out.
func (p *partition) leave(it Item) bool {
	delete(p.picked, it.Name)
	repeats := p.ref(it).mayRepeat()
	if repeats {
		p.listing.markStale()
	}
	return repeats
}

// requeue makes a picked message wait again.
func (p *partition) requeue(it Item) {
	delete(p.picked, it.Name)
	p.insert(it)
}

// hasFree removes the first waiting messages that are not free, and reports whether there
// is a free message that is due.
func (p *partition) hasFree(st *orderState, now int64) bool {
	if p.recreated.Load() {
		// The names of a deleted directory may be the names of other messages by now.
		p.waiting.replace(nil)
	}
	for {
		it, ok := p.waiting.first()
		if !ok || p.unlisted || p.mayBeRecreated() || it.Due > now {
			return false
		}
		if st.table.isFree(p.ref(it).message) {
			return true
		}
		p.waiting.pop()
		p.others++
	}
}

// pick picks at most most of the free first messages.
func (p *partition) pick(st *orderState, most int, now int64) []messageRef {
	var refs []messageRef
	for len(refs) < most && p.hasFree(st, now) {
		it, _ := p.waiting.pop()
		p.picked[it.Name] = it
		refs = append(refs, p.ref(it))
	}
	return refs
}

// passed returns the free messages that do not wait.
func (p *partition) passed(st *orderState) (passed []messageRef) {
	for _, some := range []map[string]Item{p.picked, p.skipped} {
		for _, it := range some {
			if r := p.ref(it); st.table.isFree(r.message) {
				passed = append(passed, r)
			}
		}
	}
	return passed
}

// stop stops the watches.
func (p *partition) stop() {
	p.listing.stopWatch()
	p.dirWatch.Stop()
}

// A messageRef is a message in a view.
type messageRef struct {
	message
	partition *partition
}

// ref returns the message with a name in the directory.
func (p *partition) ref(it Item) messageRef {
	return messageRef{message{p.czxid, p.anyOrder, it}, p}
}

func (r messageRef) path() string { return znode.Join(r.partition.dir, r.Name) }
