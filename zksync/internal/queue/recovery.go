package queue

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// ledgersPerRead is the number of ledgers that one request reads.
const ledgersPerRead = 32

// recoverClaims makes the messages returned that are claimed and in no ledger: their consumer
// has died. If the claim table has no room for all of them, the others follow after a time: the
// entries of the first ones go when these are settled. The caller has listed the partitions.
func recoverClaims(ctx context.Context, v *view, st *orderState) error {
	v.partitions.mu.Lock()
	partitions := slices.Clone(v.partitions.all)
	v.partitions.mu.Unlock()
	// No claim may come that removes the entries of messages that are gone, while they take the room of others.
	base := v.withoutGone(st)
	limit := v.tableLimit(st)
	if st.size > limit/2 {
		v.partitions.forgetSkipped(base)
	}
	r, err := readRecovery(ctx, v.cfg, v.s, st, base, partitions)
	if session.ClassOf(err) == session.ClassNoNode {
		v.order.forget(st)
		return nil
	}
	if err != nil {
		return err
	}
	table, n := r.fit(limit, v.partitions.isSkipped)
	if complete := n == len(r.unheld); complete || n > 0 || r.unknown {
		data := table.encode()
		_, err = v.s.Set(ctx, st.path, data, st.version)
		v.order.forget(st)
		switch class := session.ClassOf(err); {
		case class == session.ClassBadVersion, class == session.ClassConnectionLost:
			return nil // the caller reads the order znode again
		case class == session.ClassTooLarge:
			// The table has no room for the claims of the living. Until their ledgers have become
			// shorter, nothing must be claimed.
			return znode.WaitUntil(ctx, v.s, nil, time.Now().Add(fullPause))
		case err != nil:
			if err = v.order.reopen(st.path, err); err == errOrderGone {
				return nil
			}
			return err
		}
		v.order.set(st.next(table, len(data)))
		if complete {
			return nil
		}
	}
	v.order.postponeRecovery(st)
	return nil
}

// mustRecover reports whether a recovery must come before the next pick.
func (o *orderZnode) mustRecover(st *orderState) bool {
	return st.needsRecovery() && !time.Now().Before(o.nextRecovery())
}

// nextRecovery returns the time before which no recovery is tried.
func (o *orderZnode) nextRecovery() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.recoverAt
}

// postponeRecovery lets messages be picked for a time, although the recovery of a state has not
// returned all messages. The claims of the living are in the table of the present order znode.
func (o *orderZnode) postponeRecovery(st *orderState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.path == st.path && o.state != nil && o.state.czxid == st.czxid {
		o.recoverAt = time.Now().Add(fullPause)
	}
}

// hastenRecovery makes the next look recover if the last recovery has not returned all messages. It
// reports false if it did so at the last state, for which there is no room.
func (o *orderZnode) hastenRecovery(last *orderState) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	st := o.state
	if !o.isKnown || !st.needsRecovery() || st.version == last.version && st.czxid == last.czxid {
		return false
	}
	*last, o.recoverAt = *st, time.Time{}
	return true
}

// A recovery is what a claim table must say after the deaths of consumers.
type recovery struct {
	removed int32       // how many ledgers had been deleted when it began
	base    *claimTable // in which the messages in ledgers are claimed
	unknown bool        // some of these messages were not claimed before
	unheld  []claimKey  // the claimed messages that are in no ledger
}

// table returns the table in which the first n of the unheld messages are returned.
func (r *recovery) table(n int) *claimTable {
	t := r.base.clone()
	for _, k := range r.unheld[:n] {
		t.giveBack(k, 1)
	}
	// Not before the last message: the next recovery finds the others by their claims.
	if n == len(r.unheld) {
		t.recovered = r.removed
	}
	return t
}

// fit returns a table of a limited size, and the number of messages that it returns. It is no larger than base if
// that is above the limit: a claimed message that has an entry there takes as much room when it is returned, unless
// it is one of a range. The messages that this consumer skips come last, if all messages fit into half of the room.
func (r *recovery) fit(limit int, skipped func(claimKey) bool) (t *claimTable, n int) {
	var known, others, left []claimKey
	for _, k := range r.unheld {
		switch {
		case r.base.hasEntry(k):
			known = append(known, k)
		case !skipped(k):
			others = append(others, k)
		default:
			left = append(left, k)
		}
	}
	r.unheld = slices.Concat(known, others, left)
	last := len(known) + len(others)
	if n = len(r.unheld); n > last {
		if t = r.table(n); len(t.encode()) <= limit/2 {
			return t, n
		}
	}
	limit = max(limit, len(r.base.encode()))
	if n == last {
		limit += countBytes // the counts may have one more digit
	}
	for n = last; ; n /= 2 {
		if t = r.table(n); n == 0 || len(t.encode()) <= limit {
			return t, n
		}
	}
}

// readRecovery returns the recovery of a state. It changes base, a copy of the table of the state. It
// fails with NoNode if there are no ledgers any more.
func readRecovery(ctx context.Context, cfg *Config, s *session.Session, st *orderState, base *claimTable, partitions []*partition) (*recovery, error) {
	// st was read before the ledgers. A claim that has moved a message into a ledger since
	// then has changed the version of the order znode, and a write at the version of st fails.
	// So a message that is in no ledger now is in none when the write happens.
	held, err := readLedgers(ctx, s, cfg.child(claimsName))
	if err != nil {
		return nil, err
	}
	// The number that was read before the ledgers: a ledger that was deleted since then may
	// have been read above, and needs another recovery.
	r := &recovery{removed: st.removed, base: base}
	for k := range held {
		// An order znode without a predecessor knows nothing of the claims that were made
		// before it.
		if m, ok := cfg.Kind.messageOf(k); !ok || r.base.isFree(m) {
			p := r.base.of(k.czxid)
			p.entries[k.name] = claimEntry{claimed, p.entries[k.name].deliveries}
			r.unknown = true
		}
	}
	unheld := make(claimSet)
	for czxid, claims := range r.base.partitions {
		for name, e := range claims.entries {
			k := claimKey{czxid, name}
			if _, ok := held[k]; !ok && e.state == claimed {
				unheld[k] = struct{}{}
			}
		}
	}
	if err := addUnheld(ctx, s, partitions, r.base, held, unheld); err != nil {
		return nil, err
	}
	// Consecutive names make the table short.
	r.unheld = slices.SortedFunc(maps.Keys(unheld), func(a, b claimKey) int {
		return cmp.Or(cmp.Compare(a.czxid, b.czxid), cmp.Compare(a.name, b.name))
	})
	return r, nil
}

// messageOf returns the message of a key. It reports false if the name is not the name of a
// message.
func (k Kind) messageOf(key claimKey) (message, bool) {
	m := message{czxid: key.czxid, anyOrder: k.anyOrder}
	var ok bool
	if m.Item, ok = k.Parse(key.name); !ok {
		m.anyOrder = true
		m.Item, ok = parseLater(key.name)
	}
	return m, ok
}

// addUnheld adds the messages that exist, are not after the cursor of their partition, and are in
// no ledger.
func addUnheld(ctx context.Context, s *session.Session, partitions []*partition, table *claimTable, held, unheld claimSet) error {
	for _, p := range partitions {
		if p.anyOrder {
			continue // each claimed message has an entry
		}
		// A view does not remember the messages that were claimed when it listed them.
		names, stat, err := s.Children(ctx, p.dir)
		if session.ClassOf(err) == session.ClassNoNode {
			continue
		}
		if err != nil {
			return err
		}
		for _, it := range ItemsOf(names, p.parse) {
			// In the directory as it is now: it may have been created again.
			m := message{czxid: stat.Czxid, Item: it}
			if _, ok := held[m.key()]; !ok && table.entry(m).state == claimed {
				unheld[m.key()] = struct{}{}
			}
		}
	}
	return nil
}

// readLedgers returns the messages in the ledgers of all consumers.
func readLedgers(ctx context.Context, s *session.Session, dir string) (claimSet, error) {
	names, _, err := s.Children(ctx, dir)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, ledgerPrefix) })
	held := make(claimSet)
	for some := range slices.Chunk(names, ledgersPerRead) {
		reads := make([]session.Read, len(some))
		for i, name := range some {
			reads[i] = session.ReadData(znode.Join(dir, name))
		}
		results, err := s.MultiRead(ctx, reads...)
		if err != nil {
			return nil, err
		}
		for i, r := range results {
			if session.ClassOf(r.Err) == session.ClassNoNode {
				continue // its consumer has died since the listing
			}
			if err = r.Err; err == nil {
				err = held.decode(r.Data)
			}
			if err != nil {
				return nil, fmt.Errorf("the claims in %s: %w", znode.Join(dir, some[i]), err)
			}
		}
	}
	return held, nil
}
