package queue

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
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
	// bytesBehind limits the bytes that are read right behind a claim, before it is known that there is
	// room for them. On a slow network they delay the answer to the next claim, on which the lease relies.
	bytesBehind = 64 << 10

	// maxReadRequests is the number of requests that read small messages at the same time.
	maxReadRequests = maxClaims / maxReadsAtOnce
)

// A messageReader reads claimed messages for one stream.
type messageReader struct {
	v       *view
	largest atomic.Int64 // the size of the largest recent message, in bytes
	claims  atomic.Int32 // whose messages are not read yet
}

// most returns how many messages one read may bring into memory. It goes by the sizes of
// earlier messages.
func (m *messageReader) most() int { return max(1, readBudget/max(1, int(m.largest.Load()))) }

// read reads the messages of a claim, and sends them to ready. It returns the messages that it
// did not read.
func (p *stream) read(ctx context.Context, reader *messageReader, c claim, ready chan<- *Delivery) ([]*Delivery, error) {
	defer reader.claims.Add(-1)
	all := c.all
	// Before any message is delivered: if the session were lost unnoticed, another consumer
	// could have the message, too.
	if err := reader.v.claims.confirm(ctx); err != nil {
		return all, err
	}
	for len(all) > 0 {
		if err := p.c.window.waitForSpace(ctx); err != nil {
			return all, err
		}
		found, unread, err := reader.read(ctx, all, c.reads)
		c.reads = nil
		p.c.window.noteRead(found, len(all)-len(unread))
		for _, d := range found {
			ready <- d
		}
		if all = unread; err != nil {
			return all, err
		}
	}
	return nil, nil
}

// read reads the first of the claimed messages, in order, unless early has read them. It ends the
// claims on messages that do not exist or that this consumer may not read, and returns the messages
// that it has read, and the others as unread.
func (m *messageReader) read(ctx context.Context, all []*Delivery, early *claimReads) (found, unread []*Delivery, err error) {
	results := early.results(ctx)
	if results == nil {
		results, err = m.readChunks(ctx, all)
	}
	if session.IsAnswerTooSlow(err) && len(all) > 1 && m.most() > 1 {
		// The answer to a smaller read may be fast enough.
		m.largest.Store(readBudget)
		results, err = m.readChunks(ctx, all)
	}
	if session.IsAnswerTooSlow(err) { // the answer to the read of one message
		results, err = []session.ReadResult{{Err: err}}, nil
	}
	if err != nil {
		return nil, all, err
	}
	biggest, l := 0, all[0].l
	var gone []messageRef
	// Also after the failure of a later message: the stream goes on with this ledger, and nothing else
	// would take the names out of it.
	defer func() {
		if len(gone) > 0 {
			l.start(newDrop(gone...)) // without waiting for it
		}
	}()
	for i, r := range results {
		d := all[i]
		switch class := session.ClassOf(r.Err); {
		case r.Err == nil:
			d.Data, d.czxid = r.Data, r.Stat.Czxid
			biggest = max(biggest, len(r.Data))
			found = append(found, d)
		case class == session.ClassNoNode:
			// A Take has removed it before the claim, or another client, which knows no claims.
			gone = append(gone, d.ref)
			d.endClaim((*partitionList).forgetMissing)
		case isUnreadable(r.Err):
			// One message must not stop the queue.
			m.v.skip(d.ref, r.Err)
			if err := giveBack(0, d); err != nil {
				return found, all[i+1:], err
			}
		default:
			return found, all[i:], r.Err
		}
	}
	// The estimate halves with each read: a single large message must not make the reads
	// of small messages slow for long.
	if len(found) > 0 {
		biggest = max(biggest, 1) // with 0 the sizes are not known
	}
	m.largest.Store(max(int64(biggest), m.largest.Load()/2))
	return found, all[len(results):], nil
}

// chunks returns the messages that are read next, from the first one on: by one request, or by
// several at the same time if recent messages were small.
func (m *messageReader) chunks(refs []messageRef) [][]messageRef {
	// The sizes are not known before the answer: with large messages, a request for many
	// would exceed the budget, and several requests would do so several times.
	chunk, requests := min(maxReadsAtOnce, m.most()), 1
	if biggest := m.largest.Load(); biggest > 0 && biggest <= smallMessage {
		requests = maxReadRequests
	}
	return slices.Collect(slices.Chunk(refs[:min(len(refs), requests*chunk)], chunk))
}

// readChunks reads messages from the first one on.
func (m *messageReader) readChunks(ctx context.Context, all []*Delivery) ([]session.ReadResult, error) {
	chunks := m.chunks(refsOf(all))
	results := make([][]session.ReadResult, len(chunks))
	g, ctx := errgroup.WithContext(ctx)
	for i, refs := range chunks {
		g.Go(func() (err error) {
			results[i], err = m.v.readMessages(ctx, refs...)
			return err
		})
	}
	err := g.Wait()
	return slices.Concat(results...), err
}

// readBehind returns the reads of the first messages of a claim, to be sent right behind its
// transaction. It returns nil if the messages are large or their sizes are not known, also those of an earlier claim.
func (m *messageReader) readBehind(refs []messageRef) *claimReads {
	size := int(m.largest.Load())
	if size == 0 || size > bytesBehind || m.claims.Load() > 0 {
		return nil
	}
	return newClaimReads(m.v.s, m.chunks(refs[:min(len(refs), bytesBehind/size)]))
}

// readMessages reads messages of one partition in one request. The messages of a directory
// that was deleted do not exist, also if another directory has messages of their names.
func (v *view) readMessages(ctx context.Context, refs ...messageRef) ([]session.ReadResult, error) {
	results, err := v.s.MultiRead(ctx, readsOf(refs)...)
	if err != nil {
		return nil, err
	}
	return existing(refs, results)
}

// isUnreadable reports whether err says that this consumer cannot read a message: the message has an
// ACL of its own, or it is larger than the largest answer that the Manager receives, or too large for
// the speed of the network.
func isUnreadable(err error) bool {
	return session.ClassOf(err) == session.ClassNoAuth || session.IsAnswerTooLarge(err) || session.IsAnswerTooSlow(err)
}

// readMessage is readMessages for one message.
func (v *view) readMessage(ctx context.Context, r messageRef) ([]byte, *zk.Stat, error) {
	if r.partition.holdsLedgers {
		return v.s.Get(ctx, r.path())
	}
	results, err := v.readMessages(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	return results[0].Data, results[0].Stat, results[0].Err
}
