package queue

import (
	"fmt"

	"github.com/go-zookeeper/zk"
)

// An orderState is the state of the order znode and of its directory at one version.
type orderState struct {
	path      string
	version   int32
	table     *claimTable
	consumers int   // the number of ledgers
	removed   int32 // how many ledgers were deleted before
}

// newOrderState returns the state in the answer to a read. dir may be nil.
func newOrderState(path string, data []byte, order, dir *zk.Stat) (*orderState, error) {
	t, err := decodeTable(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	st := &orderState{path: path, version: order.Version, table: t}
	if dir != nil {
		// A server reports Cversion as the number of creations and deletions in the directory.
		st.consumers, st.removed = int(dir.NumChildren)-1, (dir.Cversion-dir.NumChildren)/2
	}
	return st, nil
}

// needsRecovery reports whether a ledger was deleted whose messages may be claimed by no
// living consumer.
func (st *orderState) needsRecovery() bool {
	// Another consumer may have recovered after a death that this consumer has not read yet.
	return st.removed > st.table.recovered
}

// next returns the state after a transaction that has written a table.
func (st *orderState) next(t *claimTable) *orderState {
	n := *st
	n.version++
	n.table = t
	return &n
}
