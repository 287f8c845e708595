package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// ledgersPerRead is the number of ledgers that one request reads.
const ledgersPerRead = 32

// recoverClaims makes the messages returned that are claimed and in no ledger: their consumer
// has died. The caller has listed the partitions.
func recoverClaims(ctx context.Context, v *view, st *orderState) error {
	v.partitions.mu.Lock()
	partitions := slices.Clone(v.partitions.all)
	v.partitions.mu.Unlock()
	table, err := recoveredTable(ctx, v.cfg, v.s, st, partitions)
	if session.ClassOf(err) == session.ClassNoNode {
		v.order.forget(st)
		return nil
	}
	if err != nil {
		return err
	}
	_, err = v.s.Set(ctx, st.path, table.encode(), st.version)
	v.order.forget(st)
	switch class := session.ClassOf(err); {
	case class == session.ClassBadVersion, class == session.ClassConnectionLost:
		return nil // the caller reads the order znode again
	case err != nil:
		if err = v.order.reopen(st.path, err); err == errOrderGone {
			return nil
		}
		return err
	}
	v.order.set(st.next(table))
	return nil
}

// recoveredTable returns the table of a state, in which the messages that are claimed and in
// no ledger are returned. It fails with NoNode if there are no ledgers any more.
func recoveredTable(ctx context.Context, cfg *Config, s *session.Session, st *orderState, partitions []*partition) (*claimTable, error) {
	// st was read before the ledgers. A claim that has moved a message into a ledger since
	// then has changed the version of the order znode, and a write at the version of st fails.
	// So a message that is in no ledger now is in none when the write happens.
	held, err := readLedgers(ctx, s, cfg.child(claimsName))
	if err != nil {
		return nil, err
	}
	table := st.table.clone()
	// The number that was read before the ledgers: a ledger that was deleted since then may
	// have been read above, and needs another recovery.
	table.recovered = st.removed
	for czxid, claims := range table.partitions {
		for name, e := range claims.entries {
			if _, ok := held[claimKey{czxid, name}]; !ok && e.state == claimed {
				claims.entries[name] = claimEntry{returned, e.deliveries + 1}
			}
		}
	}
	for k := range held {
		// An order znode without a predecessor knows nothing of the claims that were made
		// before it.
		if m, ok := cfg.Kind.messageOf(k); !ok || table.isFree(m) {
			p := table.of(k.czxid)
			p.entries[k.name] = claimEntry{claimed, p.entries[k.name].deliveries}
		}
	}
	return table, returnUnheld(ctx, s, partitions, table, held)
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

// returnUnheld makes the messages returned that exist, are not after the cursor of their
// partition, and are in no ledger.
func returnUnheld(ctx context.Context, s *session.Session, partitions []*partition, table *claimTable, held claimSet) error {
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
			_, ok := held[m.key()]
			if e := table.entry(m); !ok && e.state == claimed {
				table.of(m.czxid).entries[m.Name] = claimEntry{returned, e.deliveries + 1}
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
