package queue

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A ledgerTx is the transaction of a batch of changes: it writes the ledger, or
// deletes it in the end, then the order znode if a change needs that, then come the operations of the changes.
type ledgerTx struct {
	batch  []*change
	ops    []any
	ends   []int       // where the operations of each change end in ops
	claims claimSet    // of the ledger after the transaction
	data   []byte      // of the ledger after the transaction
	next   *orderState // of the order znode afterwards; nil if it is not written
	reads  *claimReads // behind the transaction; nil if there are none
}

// stateFor returns the state of the order znode for a batch that writes it, nil if the
// batch does not. It picks the messages of claims, and ends claims that rely on another
// state.
func (l *ledger) stateFor(batch []*change) (*orderState, []*change, error) {
	if !slices.ContainsFunc(batch, (*change).writesOrder) {
		return nil, batch, nil
	}
	st, err := l.v.order.current(l.life)
	if err != nil {
		return nil, batch, err
	}
	left, removals := batch[:0], 0
	for _, c := range batch {
		if c.endRemoval != nil {
			removals++ // claims come last in a batch
		}
		if why := c.pickAt(st, removals); why != nil {
			c.finish(why)
			continue
		}
		left = append(left, c)
	}
	// Then the transaction does not write the order znode, and no claim of another consumer can
	// make it fail.
	if !slices.ContainsFunc(left, (*change).writesOrder) {
		st = nil
	}
	return st, left, nil
}

// newTx builds the transaction of a batch. st is nil if the batch does not write the order
// znode.
func (l *ledger) newTx(batch []*change, st *orderState) *ledgerTx {
	// A copy: until the answer, the ledger has the claims of the transaction before.
	tx := &ledgerTx{batch: batch, claims: maps.Clone(l.claims)}
	for _, c := range batch {
		for _, r := range c.drop {
			delete(tx.claims, r.key())
		}
		for _, r := range c.add {
			tx.claims[r.key()] = struct{}{}
		}
	}
	// The ledger comes first: if its version is refused, this transaction has happened before
	// or the ledger is lost, whatever the state of the other znodes.
	tx.data = tx.claims.encode(l.version + 1)
	if batch[0].closes {
		tx.ops = append(tx.ops, &zk.DeleteRequest{Path: l.path, Version: l.version})
	} else {
		tx.ops = append(tx.ops, &zk.SetDataRequest{Path: l.path, Data: tx.data, Version: l.version})
	}
	if st != nil {
		table, data := l.v.tableAfter(st, func(t *claimTable) {
			for _, c := range batch {
				for _, edit := range c.edits {
					edit(t)
				}
			}
		})
		tx.next = st.next(table, len(data))
		tx.ops = append(tx.ops, &zk.SetDataRequest{Path: st.path, Data: data, Version: st.version})
	}
	for _, c := range batch {
		// Only the first claim has reads: a ledger seldom has claims of two streams at once.
		if c.reads = nil; c.readBehind != nil && tx.reads == nil {
			c.reads = c.readBehind(c.add)
			tx.reads = c.reads
		}
		tx.ops = append(tx.ops, c.ops...)
		tx.ends = append(tx.ends, len(tx.ops))
	}
	return tx
}

// setSent notes whether the transaction may have happened.
func (tx *ledgerTx) setSent(sent bool) {
	for _, c := range tx.batch {
		c.sent = sent
	}
}

// guarded reports whether the transaction must not be sent on another connection.
func (tx *ledgerTx) guarded() bool {
	return slices.ContainsFunc(tx.batch, func(c *change) bool { return c.seen.needed })
}

// sendTo sends the transaction, once over the connection conn if it is guarded.
func (tx *ledgerTx) sendTo(ctx context.Context, s *session.Session, conn uint64) ([]zk.MultiResponse, error) {
	multi, once := s.Multi, s.MultiOnce
	if tx.reads != nil {
		multi, once = tx.reads.followup.Multi, tx.reads.followup.MultiOnce
	}
	if !tx.guarded() {
		return multi(ctx, tx.ops...)
	}
	results, err := once(ctx, conn, tx.ops...)
	for _, c := range tx.batch {
		if c.seen.late {
			c.seen.conn = 0 // no watch guards the time since the look: look again before a repetition
		}
	}
	return results, err
}

// apply notes that a transaction has happened, whose answer took a time.
func (l *ledger) apply(tx *ledgerTx, took time.Duration) {
	l.version++
	l.claims = tx.claims
	if tx.next != nil {
		tx.next.restUntil = l.restAfter(took, tx.next.consumers)
		l.v.order.set(tx.next)
	}
	// Claims first: the stream reads their messages while the other callers wake up.
	for _, c := range slices.Backward(tx.batch) {
		c.finish(nil)
	}
}

// dropRefused ends the change whose operation at a position was refused, and the changes whose messages are gone. It
// returns the other changes.
func (tx *ledgerTx) dropRefused(ctx context.Context, s *session.Session, at int, why error) []*change {
	i := slices.IndexFunc(tx.ends, func(end int) bool { return at < end })
	left := endSome(tx.batch, why, func(c *change) bool { return c == tx.batch[i] })
	// Another client removes messages, too: one request tells which messages are gone. It
	// lists their children, because the answer then has no data.
	var reads []session.Read
	var of []*change
	for _, c := range left {
		for _, op := range c.ops {
			if d, ok := op.(*zk.DeleteRequest); ok {
				reads, of = append(reads, session.ReadChildren(d.Path)), append(of, c)
			}
		}
	}
	results, _ := s.MultiRead(ctx, reads...) // without results, the next attempts tell
	gone := make(map[*change]bool)
	for i, r := range results {
		if session.ClassOf(r.Err) == session.ClassNoNode {
			gone[of[i]] = true
		}
	}
	return endSome(left, zk.ErrNoNode, func(c *change) bool { return gone[c] })
}

// rest waits before a write of the order znode that relies on the state that this consumer has
// written itself. Only this consumer knows the version of that state: without a rest, it would win
// each race against consumers that must read the state first.
func (l *ledger) rest(ctx context.Context) error {
	if st := l.v.order.known(); st.isOwn() {
		return znode.WaitUntil(ctx, l.v.s, nil, st.restUntil)
	}
	return nil
}

// restAfter returns the end of the rest that follows a write of the order znode, whose answer took
// a time, beside other consumers. Others need a round trip between their read and their write.
func (l *ledger) restAfter(took time.Duration, consumers int) time.Time {
	if consumers <= 1 {
		return time.Time{}
	}
	rest := float64(2*max(took, leastTrip)) * math.Sqrt(float64(min(consumers, 16))) * (0.5 + l.line.rnd.Float64()/2)
	return time.Now().Add(time.Duration(rest))
}
