package queue

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// One request writes the ledger of a consumer and the order znode, and its size is limited. These rules leave room
// for the names in it, in whatever order messages are settled and given back:
//
//   - A consumer claims no more messages than its ledger could name in half of the request if none of them were
//     consecutive.
//   - Claims and messages that are given back make the claim table no larger than the other half. A message that
//     does not fit when it is given back leaves the ledger and stays claimed, like a message of a dead consumer. A
//     recovery returns it when there is room.
//   - Messages that a consumer skips stay in the queue for long. A recovery by this consumer leaves them claimed if
//     the table is more than half full, so that they do not keep other messages out of it.
//   - The cursor of each priority stays in the claim table when its messages are gone. If these take more than half of
//     the request, each look lists all partitions, and each write removes the cursors up to which no message exists.

const (
	// opsBytes is more than the operations of a claim take beside their paths and data.
	opsBytes = 160
	// nameBytes is more than a name takes in a ledger and in a claim table.
	nameBytes = 64
	// partitionBytes is more than the czxid of a partition takes in a ledger.
	partitionBytes = 20
	// countBytes is more than a recovery adds to the counts in a claim table.
	countBytes = 16
	// maxReturnRoom is the most that claims leave free in the claim table for messages that are given back.
	maxReturnRoom = 16 << 10
)

// dataRoom returns how many bytes of data of the ledger and the order znode fit into a request.
func (v *view) dataRoom() int {
	const guid = 36 // digits and hyphens
	paths := len(znode.Join(v.order.dir, ledgerPrefix)) + len(znode.Join(v.order.dir, orderPrefix)) + 2*guid +
		len(znode.Join(v.cfg.child(idleName), idlePrefix)) + numberDigits
	limit := v.cfg.Manager.MaxRequest()
	return max(limit-paths-opsBytes, limit/4) // with long paths, the table must have room for some messages all the same
}

// tableLimit returns the size in bytes up to which messages that are given back, or recovered, make the claim table
// of a state longer. The cursors of many partitions leave them some room.
func (v *view) tableLimit(st *orderState) int {
	room := v.dataRoom()
	limit := room / 2
	if st.size > limit/2 {
		limit = max(limit, st.table.baseSize()+room/8)
	}
	return limit
}

// tableAfter returns the table of a state after an edit, which may be called twice, and its data.
func (v *view) tableAfter(st *orderState, edit func(*claimTable)) (t *claimTable, data []byte) {
	limit := v.tableLimit(st)
	for _, full := range []bool{false, true} {
		t = v.withoutGone(st)
		t.full = full
		edit(t)
		if t.left {
			t.recovered = min(t.recovered, st.removed-1) // a recovery is due
		}
		if data = t.encode(); len(data) <= limit {
			break
		}
	}
	return t, data
}

// withoutGone returns a copy of the table of a state without the messages that are gone. In a table that has no room,
// those in the middle of ranges stay: without them it would be longer.
func (v *view) withoutGone(st *orderState) *claimTable {
	base := st.table.clone()
	if v.isLong(st) {
		v.partitions.forgetCursors(base)
	}
	t := base.clone()
	if !v.partitions.forgetGone(t, false) {
		return t
	}
	if size := len(t.encode()); size > st.size && size > v.tableLimit(st) {
		t = base
		v.partitions.forgetGone(t, true)
	}
	return t
}

// isLong reports whether the claim table of a state is long and may have the cursors of many partitions.
func (v *view) isLong(st *orderState) bool {
	return v.cfg.Kind.ParsePartition != nil && !v.cfg.Kind.anyOrder && st.size > v.dataRoom()/2
}

// forgetCursors removes the cursors from a long table that tell nothing, because no message exists up to them. While a
// table is short they stay: a consumer that has not listed again yet learns from them which messages are gone.
func (l *partitionList) forgetCursors(t *claimTable) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.all {
		if claims := t.partitions[p.czxid]; claims != nil {
			p.forgetCursor(claims)
		}
	}
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

// mostClaims returns how many messages a ledger may name, beside a claim table of a size, when it names some more that
// were picked: at least one.
func (l *ledger) mostClaims(table int, picked []messageRef) int {
	room := l.v.dataRoom()
	inLedger, inTable := room-max(room/2, table), math.MaxInt
	if l.v.cfg.Kind.anyOrder {
		// Each claim adds an entry to the claim table.
		inTable = room/2 - min(room/8, maxReturnRoom) - table
	}
	partitions := make(map[int64]struct{})
	name := func(k claimKey) (size int) {
		partitions[k.czxid] = struct{}{}
		return len(encodeNames([]string{k.name})) + len(" ")
	}
	for k := range l.claims {
		inLedger -= name(k)
	}
	for _, r := range picked {
		size := name(r.key())
		inLedger -= size
		inTable -= size
	}
	inLedger -= len(partitions) * partitionBytes
	return max(1, len(l.claims)+len(picked)+min(inLedger, inTable)/nameBytes)
}

// waitForRoom waits until there is room for claims. It starts the Wait noRoom if it lacks only room for names. A wait for a
// receiver that settles nothing is logged at the level Info: the receiver may be at work.
func (p *stream) waitForRoom(ctx context.Context, v *view, line *idleLine) error {
	var again *time.Timer
	var unsettled *session.Wait
	defer func() {
		if again != nil {
			again.Stop()
		}
		unsettled.Stop()
		p.c.full.Store(false)
	}()
	return p.c.window.waitForRoom(ctx, v.claims.unsettled, func() {
		line.leave() // a consumer without room must not hold up the line
		n := v.claims.unsettled()
		if unsettled == nil && n >= p.c.cfg.Prefetch && p.c.window.allReceived() {
			p.c.full.Store(true)
			unsettled = p.c.cfg.Manager.StartWaitAt(zap.InfoLevel, "consume", p.c.cfg.Path, func(context.Context) error { return p.c.cfg.errUnsettled() })
		}
		if again != nil || n >= p.c.cfg.Prefetch || !p.c.window.isFull(n) {
			return
		}
		// Other consumers may have made the claim table smaller: the next pick tells.
		again = time.AfterFunc(fullPause, func() {
			v.order.forget(v.order.known())
			p.c.window.setLimit(p.c.cfg.Prefetch)
		})
		if p.noRoom == nil {
			p.noRoom = v.s.StartWait("claim", p.c.cfg.Path, func(context.Context) error {
				return fmt.Errorf("for room: %w if it named more than the %d messages that are not settled", session.ErrTooLarge, n)
			})
		}
	})
}

// endNoRoom ends the Wait for room: there is some, or there is no message to claim.
func (p *stream) endNoRoom() {
	p.noRoom.Stop()
	p.noRoom = nil
}

// limitBy limits the claims to the messages that the ledger has room for, beside picked messages.
func (p *stream) limitBy(l *ledger, st *orderState, picked []messageRef) {
	most := l.mostClaims(st.size, picked)
	if most < p.c.cfg.Prefetch {
		// The claim removes the entries of messages that are gone.
		most = l.mostClaims(len(l.v.withoutGone(st).encode()), picked)
	}
	p.c.window.setLimit(min(p.c.cfg.Prefetch, most))
}

// roomIn returns how many messages there is room for in a transaction with some removals. Later
// removals make no room.
func (p *stream) roomIn(v *view, removals int) int {
	room, _ := p.c.window.room(v.claims.unsettledAfter(removals))
	return room
}
