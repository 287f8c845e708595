package zksync

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
)

const (
	// readBudget limits the bytes that one read brings into memory. The limit is not
	// exact: the size of a message is estimated from the messages before it.
	readBudget = 4 << 20

	// smallMessage is the size up to which several requests read messages at the same
	// time.
	smallMessage = 16 << 10

	// maxReadsAtOnce is the number of messages that one request reads. A server builds the
	// answer as a whole, from messages of up to jute.maxbuffer each, and their sizes are
	// not known before.
	maxReadsAtOnce = 16
	// maxReadRequests is the number of requests that read small messages at the same time.
	maxReadRequests = 4
)

// readClaimed reads the messages that were claimed blindly. It returns the claims on
// messages that exist, and the claims on messages that do not exist, which the caller
// must release.
func (v *queueView) readClaimed(ctx context.Context, claims []*claim) (found, gone []*claim, err error) {
	if len(claims) > 0 && claims[0].czxid != 0 {
		return claims, nil, nil // claimMessages has read all of them
	}
	found, gone, _, err = v.readMessages(ctx, claims, len(claims))
	return found, gone, err
}

// readMessages reads messages, in order, until it has found at least most of them. gone
// are the messages that do not exist, or that this consumer may not read; it skips the
// latter. left are the messages that were not read.
func (v *queueView) readMessages(ctx context.Context, claims []*claim, most int) (found, gone, left []*claim, err error) {
	found = make([]*claim, 0, len(claims))
	biggest := 0
	for left = claims; len(left) > 0 && len(found) < most; {
		results, err := v.readChunks(ctx, left, most-len(found), biggest)
		if err != nil {
			return claims, nil, nil, err
		}
		for i, r := range results {
			cl := left[i]
			switch {
			case r.Err == nil:
				cl.data, cl.czxid = r.Data, r.Stat.Czxid
				biggest = max(biggest, len(r.Data))
				found = append(found, cl)
			case session.ClassOf(r.Err) == session.ClassNoNode:
				gone = append(gone, cl)
			case session.ClassOf(r.Err) == session.ClassNoAuth:
				// One message with an ACL of its own must not stop the queue.
				v.skip(cl.messageRef, r.Err)
				gone = append(gone, cl)
			default:
				return claims, nil, nil, r.Err
			}
		}
		left = left[len(results):]
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	// The estimate halves with each read: a single large message must not make the reads
	// of small messages slow for long.
	v.largestRecent = max(biggest, v.largestRecent/2)
	return found, gone, left, nil
}

// readChunks reads about n messages from the first one on: by one request, or by several
// at the same time if recent messages were small.
func (v *queueView) readChunks(ctx context.Context, claims []*claim, n, biggest int) ([]session.ReadResult, error) {
	v.mu.Lock()
	biggest = max(biggest, v.largestRecent)
	v.mu.Unlock()
	// The sizes are not known before the answer: with large messages, a request for many
	// would exceed the budget, and several requests would do so several times.
	chunk, requests := min(maxReadsAtOnce, max(1, readBudget/max(1, biggest))), 1
	if biggest > 0 && biggest <= smallMessage {
		requests = maxReadRequests
	}
	n = min(len(claims), (n+chunk-1)/chunk*chunk, requests*chunk)
	results := make([]session.ReadResult, n)
	g, ctx := errgroup.WithContext(ctx)
	for at := 0; at < n; at += chunk {
		reads := make([]session.Read, 0, chunk)
		for _, cl := range claims[at:min(at+chunk, n)] {
			reads = append(reads, session.ReadData(v.path(cl.messageRef)))
		}
		g.Go(func() error {
			some, err := v.s.MultiRead(ctx, reads...)
			copy(results[at:], some)
			return err
		})
	}
	return results, g.Wait()
}
