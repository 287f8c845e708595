package queue

import (
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// An orderState is the state of the order znode at one version.
type orderState struct {
	path    string
	czxid   int64 // tells it from another order znode, also if that has the same name
	version int32
	table   *claimTable
	size    int // of the data of the order znode
	ledgerCount
	restUntil time.Time // this consumer has written the state, and rests until then; see ledger.rest
}

// A ledgerCount counts the ledgers in the directory of the order znode.
type ledgerCount struct {
	consumers int   // how many there are
	removed   int32 // how many were deleted
}

// countLedgers returns the count in the Stat of the directory.
func countLedgers(dir *zk.Stat) ledgerCount {
	// A server reports Cversion as the number of creations and deletions in the directory. It wraps after 2^30
	// creations, and the server stops counting at 2^31.
	return ledgerCount{int(dir.NumChildren) - 1, int32(uint32(dir.Cversion-dir.NumChildren) / 2)}
}

// newerThan reports whether a ledger was created or deleted between other and c.
func (c ledgerCount) newerThan(other ledgerCount) bool {
	// A creation raises consumers by one. A deletion lowers consumers by one and raises removed
	// by one. So each of them raises this sum by one.
	changes := func(c ledgerCount) int { return c.consumers + 2*int(c.removed) }
	return changes(c) > changes(other)
}

// newOrderState returns the state in the answer to a read.
func newOrderState(path string, data []byte, order *zk.Stat, ledgers ledgerCount) (*orderState, error) {
	t, err := decodeTable(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &orderState{path: path, czxid: order.Czxid, version: order.Version, table: t, size: len(data), ledgerCount: ledgers}, nil
}

// readState returns the state in the results of orderZnode.reads.
func readState(path string, results []session.ReadResult) (*orderState, error) {
	for _, r := range results {
		if r.Err != nil {
			return nil, r.Err
		}
	}
	return newOrderState(path, results[0].Data, results[0].Stat, countLedgers(results[1].Stat))
}

// needsRecovery reports whether a ledger was deleted whose messages may be claimed by no
// living consumer.
func (st *orderState) needsRecovery() bool {
	// Another consumer may have recovered after a death that this consumer has not read yet.
	return st.removed > st.table.recovered
}

// isOwn reports whether this consumer has written the state, beside other consumers.
func (st *orderState) isOwn() bool { return st != nil && !st.restUntil.IsZero() }

// with returns the state with another count of ledgers: itself if the count is the same.
func (st *orderState) with(ledgers ledgerCount) *orderState {
	if st.ledgerCount == ledgers {
		return st
	}
	n := *st
	n.ledgerCount = ledgers
	return &n
}

// next returns the state after a transaction that has written a table, which has a size.
func (st *orderState) next(t *claimTable, size int) *orderState {
	n := *st
	n.version++
	n.table, n.size = t, size
	n.restUntil = time.Time{}
	return &n
}
