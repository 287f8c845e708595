package queue

import (
	"errors"
	"slices"

	"github.com/go-zksync/toolkit/session"
)

const (
	// maxClaims is the number of claims in one transaction.
	maxClaims = 128
	// maxChanges is the number of changes in one transaction: a claim, and the removals that make
	// room for it.
	maxChanges = maxClaims + 1
	// maxChangeBytes limits the transaction, apart from ledger and order znode.
	maxChangeBytes = 512 << 10
)

var (
	// errConflict says that another consumer has claimed messages since the state was read on
	// which a claim relies.
	errConflict = errors.New("another consumer was faster")

	// errUnseen says that a message is to be looked at again before its removal: see sighting.
	errUnseen = errors.New("another directory may have the name of the message's directory")

	// errNothingFree says that there was no message to claim.
	errNothingFree = errors.New("no message is free")
)

// A change is a change of a ledger, together with its other operations: all of them
// happen or none does.
//
//	claim       pick and add names, edit the table
//	settle      drop a name, delete its message
//	give back   drop names, edit the table
//	close       delete the ledger, edit the table
type change struct {
	// pick makes a claim of the change when its transaction is built: it returns the messages
	// to claim. They are free by the very state on whose version the transaction relies. removals
	// is the number of removals in the transaction, which make room.
	pick func(st *orderState, removals int) selection
	at   *orderState // of the picked messages; nil before the pick

	// readBehind, if it is not nil, returns the reads of claimed messages, to be sent behind the claim.
	readBehind func([]messageRef) *claimReads
	reads      *claimReads // behind the newest transaction; nil if there are none

	add, drop []messageRef
	closes    bool // the ledger is deleted; the only change of its batch
	edits     []func(t *claimTable)
	ops       []any // deletes and creates
	size      int   // of ops, in bytes, roughly

	seen sighting // of the message that the change deletes

	// endRemoval is called before done is closed if the change fails. It is nil unless the change
	// removes a claimed message, which makes room; see claimCount.beginRemoval.
	endRemoval func()

	// onDone, if it is not nil, is called once done is closed. It must not block, and takes the
	// mutex of the ledger only if err is nil.
	onDone func()
	done   chan struct{}
	err    error // valid once done is closed
	sent   bool  // the transaction was sent, so that an err of the session leaves the outcome open
}

func newChange(edits ...func(t *claimTable)) *change {
	return &change{edits: edits, done: make(chan struct{})}
}

// writesOrder reports whether the change writes the order znode.
func (c *change) writesOrder() bool { return c.pick != nil || len(c.edits) > 0 }

// isPicked reports whether the change is a claim whose messages were picked.
func (c *change) isPicked() bool { return c.at != nil }

// pickAt picks the messages of a claim, unless they were picked at the same state before.
func (c *change) pickAt(st *orderState, removals int) error {
	switch {
	case c.pick == nil:
		return nil
	case c.at != nil && (c.at.version != st.version || c.at.czxid != st.czxid):
		// The transaction was built before, and another consumer may have claimed the picked
		// messages since.
		return errConflict
	case c.at != nil:
		return nil
	}
	sel := c.pick(st, removals)
	if len(sel.refs) == 0 {
		return errNothingFree
	}
	c.at, c.add = st, sel.refs
	c.edits = append(c.edits, func(t *claimTable) {
		for _, r := range sel.refs {
			t.claim(r.message)
		}
		// After the claims: only they move the cursor past these messages.
		for _, r := range sel.passed {
			t.keepFree(r.message)
		}
	})
	return nil
}

// newDrop returns a change that ends the claims on messages that are gone after it.
func newDrop(refs ...messageRef) *change {
	c := newChange()
	c.drop = refs
	for _, r := range refs {
		// The next message in the directory has the same name. An entry that says claimed would
		// keep that message from all consumers, so it must not wait for the next claim.
		if r.mayRepeat() {
			c.edits = append(c.edits, func(t *claimTable) { t.forget(r.key()) })
		}
	}
	return c
}

// claimsLast puts claims after other changes, whose room they may take.
func claimsLast(a, b *change) int {
	switch {
	case (a.pick == nil) == (b.pick == nil):
		return 0
	case a.pick == nil:
		return -1
	}
	return 1
}

// endSome ends the changes of a batch that ends selects, and claims that may have taken their room. It returns the
// other changes.
func endSome(batch []*change, why error, ends func(*change) bool) (left []*change) {
	var ended []*change
	for _, c := range batch {
		if ends(c) {
			c.finish(why)
			ended = append(ended, c)
		} else {
			left = append(left, c)
		}
	}
	return endClaims(left, ended)
}

// endClaims ends the claims of a batch that were picked and may have taken the room of removals
// that were refused. It returns the other changes.
func endClaims(batch, refused []*change) (left []*change) {
	if !slices.ContainsFunc(refused, (*change).keptRoom) {
		return batch
	}
	return endSome(batch, errNothingFree, (*change).isPicked) // the next claim counts the room again
}

// keptRoom reports whether a change should have made room and was refused. A message that another
// client has removed takes no room; if the change also puts it elsewhere, the target may be missing.
func (c *change) keptRoom() bool {
	class := session.ClassOf(c.err)
	return c.endRemoval != nil && class != session.ClassOK && (class != session.ClassNoNode || len(c.ops) > 1)
}

func (c *change) finish(err error) {
	c.err = err
	if err != nil && c.endRemoval != nil {
		c.endRemoval()
	}
	close(c.done)
	if c.onDone != nil {
		c.onDone()
	}
}

func finishAll(batch []*change, err error) {
	for _, c := range batch {
		c.finish(err)
	}
}
