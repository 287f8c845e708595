package zksync

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// A partition is one directory of messages. A Queue has one partition, a PriorityQueue
// one for each priority, and a DelayQueue one for each span of time.
type partition struct {
	name        string // in the queue's directory; empty for that itself
	key         int64
	firstListed int64 // when it was first listed, in milliseconds since 1970
	waiting     backlog
	czxid       int64 // of the directory; 0 before the first listing
	dirWatch    *session.Watch
	recreated   atomic.Bool // the directory was deleted, and there may be another one
	tracked     atomic.Bool // the deletion of the directory fires a watch, or deletes our claims
	listing     *staleFlag
	undeletable bool                // an attempt to remove the directory failed
	skipped     map[string]struct{} // the names of messages that cannot be read or removed
}

// mayBeRecreated reports whether a name in the directory may stand for another message by
// now: the directory was deleted, or its deletion would go unnoticed.
func (p *partition) mayBeRecreated() bool { return p.recreated.Load() || !p.tracked.Load() }

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

// A messageRef identifies a message in a view.
type messageRef struct {
	partition *partition
	queueItem
}

// claimName returns the name of the claim on a message. One directory has the claims of
// all partitions.
func (r messageRef) claimName() string {
	if r.partition.name == "" {
		return r.name
	}
	return r.partition.name + "-" + r.name
}

// hasClaim reports whether a claim of that name is on a message of the partition.
func (p *partition) hasClaim(name string) bool {
	if p.name == "" {
		return true
	}
	return strings.HasPrefix(name, p.name+"-")
}
