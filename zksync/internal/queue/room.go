package queue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// One request writes the ledger of a consumer and the order znode, and its size is limited. So that the names
// in it always fit, whichever messages are settled or given back first:
//
//   - A consumer claims no more messages than its ledger could name if none of them were consecutive, while
//     the claim table has its largest size.
//   - A message that is given back adds no entry to a claim table of that size. It leaves the ledger and stays
//     claimed, like a message of a dead consumer. A recovery returns it when there is room.
//   - Messages that a consumer skips stay in the queue for long. A recovery by this consumer leaves them claimed if
//     the table is more than half full, so that they do not keep other messages out of it.

// tableLimit returns the size in bytes up to which messages that are given back, or recovered, add entries to
// the claim table.
func (c *Config) tableLimit() int { return c.Manager.MaxRequest() / 4 }

const (
	// opsBytes is more than the operations of a claim take beside their paths and data.
	opsBytes = 160
	// nameBytes is more than a name takes in a ledger and in a claim table.
	nameBytes = 64
	// partitionBytes is more than the czxid of a partition takes in a ledger.
	partitionBytes = 20
)

// tableAfter returns the table of a state after an edit, which may be called twice, and its data.
func (v *view) tableAfter(st *orderState, edit func(*claimTable)) (t *claimTable, data []byte) {
	for _, full := range []bool{false, true} {
		t = st.table.clone()
		t.full = full
		v.partitions.forgetGone(t)
		edit(t)
		if t.left {
			t.recovered = min(t.recovered, st.removed-1) // a recovery is due
		}
		if data = t.encode(); len(data) <= v.cfg.tableLimit() {
			break
		}
	}
	return t, data
}

// forgetSkipped removes the entries of the free messages that this consumer skips from a table, for a recovery.
func (l *partitionList) forgetSkipped(t *claimTable) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.all {
		for _, it := range p.skipped {
			if m := p.ref(it).message; t.isFree(m) {
				t.forget(m.key())
			}
		}
	}
}

// isSkipped reports whether this consumer skips a message.
func (l *partitionList) isSkipped(k claimKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.all, func(p *partition) bool {
		_, skipped := p.skipped[k.name]
		return skipped && p.czxid == k.czxid
	})
}

// mostClaims returns how many messages a ledger may name when it names some more that were picked: at least one.
func (l *ledger) mostClaims(st *orderState, picked []messageRef) int {
	paths := len(l.path) + len(st.path) + len(znode.Join(l.v.cfg.child(idleName), idlePrefix)) + numberDigits
	free := l.v.cfg.Manager.MaxRequest() - max(st.size, l.v.cfg.tableLimit()) - paths - opsBytes
	partitions := make(map[int64]struct{})
	names := func(k claimKey) {
		free -= len(k.name) + len(": ")
		partitions[k.czxid] = struct{}{}
	}
	for k := range l.claims {
		names(k)
	}
	for _, r := range picked {
		names(r.key())
	}
	free -= len(partitions) * partitionBytes
	return max(1, len(l.claims)+len(picked)+free/nameBytes)
}

// waitForRoom waits until there is room for claims. It starts the wait full if it lacks only room for names.
func (p *stream) waitForRoom(ctx context.Context, v *view, line *idleLine, full **session.Wait) error {
	var again *time.Timer
	defer func() {
		if again != nil {
			again.Stop()
		}
	}()
	return p.window.waitForRoom(ctx, v.claims.unsettled, func() {
		line.leave() // a consumer without room must not hold up the line
		n := v.claims.unsettled()
		if again != nil || n >= p.c.cfg.Prefetch || !p.window.isFull(n) {
			return
		}
		// Other consumers may have made the claim table smaller: the next pick tells.
		again = time.AfterFunc(fullPause, func() {
			v.order.forget(v.order.known())
			p.window.setLimit(p.c.cfg.Prefetch)
		})
		if *full == nil {
			*full = v.s.StartWait("claim", p.c.cfg.Path, func(context.Context) error {
				return fmt.Errorf("for room: %w if it named more than the %d messages that are not settled", session.ErrTooLarge, n)
			})
		}
	})
}

// limitBy limits the claims to the messages that the ledger has room for, beside picked messages.
func (p *stream) limitBy(l *ledger, st *orderState, picked []messageRef) {
	p.window.setLimit(min(p.c.cfg.Prefetch, l.mostClaims(st, picked)))
}

// roomIn returns how many messages there is room for in the next transaction of a ledger.
func (p *stream) roomIn(l *ledger) int {
	// Removals in the same transaction make room, and later ones do not. In this order: a
	// removal that is queued meanwhile must not count as room.
	room, _ := p.window.room(func() int { return l.v.claims.unsettled() + l.queuedRemovals() })
	return room
}
