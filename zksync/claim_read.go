package zksync

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
)

const (
	// readBudget bounds the bytes that one read brings into memory, roughly: the size
	// of a message is estimated from the messages before it.
	readBudget = 4 << 20

	// smallMessage is the size up to which messages are read by several requests at a
	// time.
	smallMessage = 16 << 10

	// maxReadsAtOnce is how many messages one request reads. A server builds the answer as
	// a whole, from messages of up to jute.maxbuffer each, and their sizes are not known
	// before.
	maxReadsAtOnce = 16
	// maxReadRequests is how many requests read small messages at a time.
	maxReadRequests = 4
)

// readClaimed reads the messages that were claimed blindly. It returns the claims on
// messages that exist, and the claims on messages that do not, which the caller must
// give back.
func (v *queueView) readClaimed(ctx context.Context, claims []*claim) (found, gone []*claim, err error) {
	if len(claims) > 0 && claims[0].czxid != 0 {
		return claims, nil, nil
	}
	found, gone, _, err = v.readMessages(ctx, claims, len(claims))
	return found, gone, err
}

// readMessages reads messages, in order and at least until it has found most of them. It says
// which are not there or must not be read; the latter are skipped. left were not looked
// at.
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
	v.largestRecent = max(biggest, v.largestRecent/2)
	return found, gone, left, nil
}

// readChunks reads the first of some messages, about n: by one request, or by several at a
// time where the messages of late were small.
func (v *queueView) readChunks(ctx context.Context, claims []*claim, n, biggest int) ([]session.ReadResult, error) {
	v.mu.Lock()
	biggest = max(biggest, v.largestRecent)
	v.mu.Unlock()
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
