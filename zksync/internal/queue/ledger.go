package queue

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A ledger is the list of the messages that one consumer has claimed under one session.
// It is an ephemeral znode: when the session ends, all claims end with one small znode.
// All changes go through one stream of transactions, each of which relies on the version
// that the transaction before has left. So a transaction may be repeated after a lost
// answer: if the ledger has another version then, the transaction has happened.
type ledger struct {
	v    *view
	path string
	life context.Context // ends when Close waits no longer

	usable context.Context // ends when the ledger cannot be used any more
	end    context.CancelCauseFunc

	mu       sync.Mutex
	queued   []*change
	running  bool
	deferred bool        // all changes in queued wait for a claim
	due      *time.Timer // ends their wait; nil if no change has waited since the last transaction

	// Used by run alone, and by others while it does not run:
	version int32
	claims  claimSet
	line    *idleLine // of changes that were refused because others were faster
}

// do carries out one change.
func (l *ledger) do(c *change) error {
	l.start(c)
	<-c.done
	return c.err
}

// giveBack makes claimed messages free. ended is the number of the deliveries of each
// that have ended. sent reports, beside an error, that this may have happened.
func (l *ledger) giveBack(ended int, refs ...messageRef) (sent bool, err error) {
	c := newChange(func(t *claimTable) {
		for _, r := range refs {
			t.giveBack(r.key(), ended)
		}
	})
	c.drop = refs
	_ = l.rest(l.life) // without l.life, the change fails with the reason
	err = l.do(c)
	return c.sent, err
}

// carryOut sends transactions until each change of a batch has an outcome. If the ledger
// cannot be used any more, it returns the changes without an outcome and the reason.
func (l *ledger) carryOut(batch []*change) ([]*change, error) {
	defer l.line.leave()
	conflicts, unclear := 0, false
	for round := 0; ; {
		st, left, err := l.stateFor(batch)
		conn := l.v.s.Connection()
		if batch = endSome(left, errUnseen, func(c *change) bool { return !c.seen.holds(conn) }); len(batch) == 0 {
			return nil, nil
		}
		refusal := true // the transaction has not happened
		if err == nil {
			tx := l.newTx(batch, st)
			var results []zk.MultiResponse
			began := time.Now()
			results, err = l.send(tx, conn)
			took := time.Since(began)
			if err == nil {
				l.apply(tx, took)
				return nil, nil
			}
			at, class := session.FailedOp(results), session.ClassOf(err)
			refusal = !batch[0].sent
			switch {
			case class == session.ClassTransient: // try again
			case at < 0 && class == session.ClassUnknown && refusal && tx.guarded() && !unclear:
				unclear = true // send has not tried again
				if err = l.v.s.Pause(l.life, round); err == nil {
					continue
				}
			case at == 0 && (class == session.ClassNoNode || class == session.ClassBadVersion):
				// Another client has deleted or written the ledger. The claims are gone.
				return batch, fmt.Errorf("%w: %s: %w", session.ErrRemoved, l.path, err)
			case at == 1 && st != nil:
				l.v.order.forget(st)
				// Another consumer has written the order znode: the other changes edit the new table.
				if err = l.v.order.reopen(st.path, err); err == errOrderGone || class == session.ClassBadVersion {
					if batch = endSome(batch, errConflict, (*change).isPicked); len(batch) == 0 {
						return nil, nil
					}
					if conflicts++; conflicts == 1 {
						continue
					}
					if err = l.line.nextTurn(l.life, took); err == nil {
						continue
					}
				}
			case at > 0:
				// One message is gone or cannot be removed. The other changes do not depend on it.
				batch = tx.dropRefused(l.life, l.v.s, at, err)
				continue
			case class == session.ClassTooLarge && len(batch) > 1:
				// The limit of the servers includes the data of ledger and order znode, which
				// nextBatch does not know.
				first, rest := batch[:len(batch)/2], batch[len(batch)/2:]
				if left, err := l.carryOut(slices.Clone(first)); err != nil {
					return append(left, rest...), err
				}
				batch = endClaims(rest, first)
				continue
			case class == session.ClassTooLarge:
				// Nothing was sent, so the ledger can be used for other changes. The claim table may be smaller by now.
				l.v.order.forget(st)
				finishAll(batch, err)
				return nil, nil
			}
		}
		if session.ClassOf(err).Again() {
			err = l.v.s.Pause(l.life, round)
			round++
		} else if n := len(batch); refusal {
			// The server may accept no larger ledger or no new claims, because of a quota or an
			// ACL. An Ack makes the ledger smaller.
			if batch = endSome(batch, err, (*change).writesOrder); len(batch) < n {
				continue
			}
		}
		if err != nil {
			if refusal && l.v.s.Err() == nil {
				finishAll(batch, err)
				return nil, nil // the ledger can be used for other changes
			}
			return batch, err
		}
	}
}

// send sends a transaction, and repeats it until an answer arrives. Under one session
// the ledger's version makes that safe. A guarded transaction is sent once, over the connection
// conn: before a repetition, carryOut must look at the sightings again.
func (l *ledger) send(tx *ledgerTx, conn uint64) ([]zk.MultiResponse, error) {
	unclear := tx.guarded() // the next internal error is returned
	for round := 0; ; round++ {
		if err := l.v.s.Pause(l.life, round-1); err != nil {
			return nil, err
		}
		// Before the request: if Close ends the wait for the answer, Ack must report that the
		// outcome is unknown.
		tx.setSent(true)
		results, err := tx.sendTo(l.life, l.v.s, conn)
		switch class := session.ClassOf(err); {
		case class == session.ClassConnectionLost && !tx.guarded(), class == session.ClassTransient && round > 0:
			// The reads behind it may be the reason, if the servers do not know them any more, and a busy
			// server is spared them.
			tx.reads = nil
			continue
		case class == session.ClassUnknown && len(results) == 0 && !unclear:
			unclear = true
			continue
		case class == session.ClassConnectionLost, class == session.ClassUnknown && len(results) == 0,
			round > 0 && class == session.ClassBadVersion && session.FailedOp(results) == 0:
			// The transaction may have happened, also in an earlier round, unless another client has
			// written the ledger.
			data, stat, failed := l.read()
			if failed == nil && bytes.Equal(data, tx.data) {
				return results, nil
			}
			tx.setSent(failed != nil || stat.Version != l.version)
			return results, err
		case class != session.ClassLost && class != session.ClassCancelled && class != session.ClassClosed:
			tx.setSent(err == nil)
		}
		return results, err
	}
}

// read returns the data of the ledger behind all transactions that were sent. It tries again
// until an answer arrives, also after internal errors of servers: without one, the claims would be lost.
func (l *ledger) read() (data []byte, stat *zk.Stat, err error) {
	err = znode.ReadPatiently(l.life, l.v.s, "settle", l.v.cfg.Path, func() (err error) {
		for round := 0; ; round++ {
			if err = l.v.s.Pause(l.life, round-1); err != nil {
				return err
			}
			if err = l.v.s.SyncQuorum(l.life, l.path); err == nil {
				data, stat, err = l.v.s.Get(l.life, l.path)
			}
			if !session.ClassOf(err).Again() || l.v.s.Err() != nil {
				return err
			}
		}
	})
	return data, stat, err
}

// close deletes the ledger, and gives back the messages in it. No change follows.
func (l *ledger) close() error {
	for round := 0; ; round++ {
		if err := l.v.s.Pause(l.life, round-1); err != nil {
			return err
		}
		c := newChange(func(t *claimTable) {
			for k := range l.claims {
				t.giveBack(k, 0)
			}
			t.recovered++ // this ledger needs no recovery
		})
		c.closes = true
		if _, err := l.carryOut([]*change{c}); err != nil {
			return err
		}
		// After an internal error of a server, once more: if only the ledger were deleted, its messages
		// would count as delivered.
		if session.ClassOf(c.err) != session.ClassUnknown {
			return c.err
		}
	}
}
