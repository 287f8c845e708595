package zksync

import (
	"context"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// maxSessionClaimBytes limits the paths of the claims of one session. A server writes
// the transaction that closes a session as one record with the paths of all its
// ephemerals, and a record above jute.maxbuffer, which is 1 MB unless it is configured,
// keeps every server from starting again.
const maxSessionClaimBytes = 256 << 10

// claimLoads has the claimLoad of each live session of this process.
var claimLoads struct {
	mu sync.Mutex
	of map[*session.Session]*claimLoad
}

// A claimLoad is the sum of the claims of all values that consume under one session, in
// bytes.
type claimLoad struct {
	broadcast // notifies when the sum has gone down

	mu    sync.Mutex
	bytes int
}

// claimLoadOf returns the claimLoad of a session.
func claimLoadOf(s *session.Session) *claimLoad {
	claimLoads.mu.Lock()
	defer claimLoads.mu.Unlock()
	if l := claimLoads.of[s]; l != nil {
		return l
	}
	l := &claimLoad{}
	if s.Err() != nil {
		return l // not shared: the claims of an ended session are gone
	}
	if claimLoads.of == nil {
		claimLoads.of = make(map[*session.Session]*claimLoad)
	}
	claimLoads.of[s] = l
	context.AfterFunc(s.Context(), func() {
		claimLoads.mu.Lock()
		defer claimLoads.mu.Unlock()
		delete(claimLoads.of, s)
	})
	return l
}

// adjust adds bytes, which may be negative, to the sum.
func (l *claimLoad) adjust(bytes int) {
	l.mu.Lock()
	l.bytes += bytes
	l.mu.Unlock()
	if bytes < 0 {
		l.notify()
	}
}

// reserve adds as many of n claims, of each bytes, as there is room for, and no fewer than
// least. It returns their number.
func (l *claimLoad) reserve(n, each, least int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Check and add under one lock: values that claim at the same time must not use the
	// same room.
	n = min(n, max(least, (maxSessionClaimBytes-l.bytes)/each))
	l.bytes += n * each
	return n
}

// free returns the number of bytes that there is room for.
func (l *claimLoad) free() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, maxSessionClaimBytes-l.bytes)
}

// claimNameLength is the length of the longest name of a claim, in a DelayQueue:
// t-<seconds>-qn-<milliseconds>-<sequence number>.
const claimNameLength = len("t-0123456789-qn-0123456789012-01234567890")

// claimBytes returns the most bytes that one claim of the queue adds to the
// transaction that closes its session.
func (q *queue) claimBytes() int {
	path := znode.Join(q.child(claimsName), "n")
	// MultiSize adds the chroot, which the path in the server's record has, too. It also
	// adds the frame of a request, so that the result is a little too large.
	if size, err := q.m.MultiSize(&zk.CheckVersionRequest{Path: path}); err == nil {
		return size + claimNameLength
	}
	return len(path) + claimNameLength
}
