package queue

import (
	"errors"
	"math"
)

const (
	// maxChanges is the number of changes in one transaction.
	maxChanges = 128
	// maxChangeBytes limits the transaction, apart from ledger and order znode.
	maxChangeBytes = 512 << 10
)

// errConflict says that another consumer has claimed messages since the state was read on
// which a claim relies.
var errConflict = errors.New("another consumer was faster")

// A change is a change of a ledger, together with its other operations: all of them
// happen or none does.
//
//	claim       add names, edit the table; at is the state that says the names are free
//	settle      drop a name, delete its message
//	give back   drop names, edit the table
type change struct {
	add, drop []messageRef
	edits     []func(t *claimTable) // none if the change does not write the order znode
	at        *orderState           // nil if any state will do
	ops       []any                 // deletes and creates
	size      int                   // of ops, in bytes, roughly

	done chan struct{}
	err  error // valid once done is closed
	sent bool  // the transaction was sent, so that an err of the session leaves the outcome open
}

func newChange(edits ...func(t *claimTable)) *change {
	return &change{edits: edits, done: make(chan struct{})}
}

// newDrop returns a change that ends the claims on messages that are gone after it.
func newDrop(refs ...messageRef) *change {
	c := newChange()
	c.drop = refs
	for _, r := range refs {
		// The next message in the directory has the same name. An entry that says claimed would
		// keep that message from all consumers, so it must not wait for the next claim.
		if r.Seq == math.MaxInt32 {
			c.edits = append(c.edits, func(t *claimTable) { t.forget(r.key()) })
		}
	}
	return c
}

func (c *change) finish(err error) {
	c.err = err
	close(c.done)
}

func finishAll(batch []*change, err error) {
	for _, c := range batch {
		c.finish(err)
	}
}

// endGrowing ends the changes that claim messages or write the order znode, and returns
// the other changes.
func endGrowing(batch []*change, why error) (left []*change) {
	for _, c := range batch {
		if len(c.edits) > 0 || len(c.add) > 0 {
			c.finish(why)
		} else {
			left = append(left, c)
		}
	}
	return left
}
