package zksync

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// A partition is one directory of messages.
type partition struct {
	name        string // in the queue's directory; empty for that itself
	key         int64
	firstListed int64 // when it was first listed, in milliseconds since 1970
	waiting     backlog
	czxid       int64 // of the directory, 0 before it was listed
	dirWatch    *session.Watch
	recreated   atomic.Bool // the directory was deleted, and there may be another one
	tracked     atomic.Bool // a watch tells of the deletion of the directory, or claims go with it
	listing     *staleFlag
	undeletable bool                // an attempt to remove the directory failed
	skipped     map[string]struct{} // the names of messages that cannot be read or removed
}

// mayBeRecreated reports whether a name of the partition may stand for another message by now:
// the directory was deleted, or no watch would report its deletion.
func (p *partition) mayBeRecreated() bool { return p.recreated.Load() || !p.tracked.Load() }

// partitionAge is how long the partition of a past time is kept, for producers with a clock
// behind ours.
const partitionAge = time.Minute

// expiry is when a partition of a DelayQueue is to be removed, in milliseconds since 1970. A partition
// that appears when its time is over stays for partitionAge from then on: a producer, whose
// clock is behind or whose Put has waited for a connection, has made the partition and is about
// to put a message into it.
func (p *partition) expiry() int64 {
	return max(p.key+partitionWidth.Milliseconds(), p.firstListed) + partitionAge.Milliseconds()
}

// A messageRef names a message.
type messageRef struct {
	partition *partition
	queueItem
}

// claimName is the name of the claim on a message, in the one directory that all
// partitions have in common.
func (r messageRef) claimName() string {
	if r.partition.name == "" {
		return r.name
	}
	return r.partition.name + "-" + r.name
}

// hasClaim says whether a claim of that name is on a message of the partition.
func (p *partition) hasClaim(name string) bool {
	if p.name == "" {
		return true
	}
	return strings.HasPrefix(name, p.name+"-")
}
