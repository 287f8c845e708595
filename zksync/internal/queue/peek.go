package queue

import (
	"context"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// Peek returns the message that would be delivered next, and false if there was none at
// the time of the call. It writes nothing.
func (c *Consumer) Peek(ctx context.Context) (data []byte, ok bool, err error) {
	err = c.cfg.Manager.Do(ctx, func(ctx context.Context, s *session.Session) error {
		data, ok, err = c.cfg.peek(ctx, s)
		if ok || err != nil && !isUnreadable(err) {
			return err
		}
		// The server may lag, or be a deposed leader, and not know a message that can be read.
		if err = s.SyncQuorum(ctx, c.cfg.Path); err != nil {
			return err
		}
		data, ok, err = c.cfg.peek(ctx, s)
		return err
	})
	return data, ok, err
}

func (c *Config) peek(ctx context.Context, s *session.Session) (data []byte, ok bool, err error) {
	partitions, err := c.listPartitions(ctx, s)
	if err != nil {
		return nil, false, err
	}
	table, err := c.readTable(ctx, s, partitions)
	if err != nil {
		return nil, false, err
	}
	now := time.Now().UnixMilli()
	var unreadable error
	for _, p := range partitions {
		if p.expires && p.key > now {
			break // so are all later ones
		}
		names, stat, err := s.Children(ctx, p.dir)
		if session.ClassOf(err) == session.ClassNoNode {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		p.czxid = stat.Czxid
		found := ItemsOf(names, p.parse)
		if p.name == "" {
			c.observeLength(len(found))
		}
		for _, it := range found {
			if it.Due > now {
				break
			}
			r := p.ref(it)
			if !table.isFree(r.message) {
				continue
			}
			data, _, err = s.Get(ctx, r.path())
			switch {
			case isUnreadable(err):
				unreadable = err
			case session.ClassOf(err) == session.ClassNoNode: // another consumer has removed it
			default:
				return data, err == nil, err
			}
		}
	}
	return nil, false, unreadable
}

// readTable returns the claim table, in which the messages of dead consumers are free.
func (c *Config) readTable(ctx context.Context, s *session.Session, partitions []*partition) (*claimTable, error) {
	o := orderZnode{cfg: c, s: s, dir: c.child(claimsName)}
	for missing := ""; ; {
		data, _, err := s.Get(ctx, o.dir)
		name := string(data)
		if err == nil && (!strings.HasPrefix(name, orderPrefix) || znode.Join(o.dir, name) == missing) {
			name, err = o.unnamed(ctx, missing)
		}
		if session.ClassOf(err) == session.ClassNoNode {
			// There are no ledgers, either, so no message is claimed.
			return &claimTable{}, nil
		}
		if err != nil {
			return nil, err
		}
		// Without an order znode, a consumer creates one, and a recovery makes the messages in ledgers claimed.
		st := &orderState{table: &claimTable{recovered: -1, partitions: make(map[int64]*partitionClaims)}}
		if name != "" {
			st, err = o.read(ctx, znode.Join(o.dir, name))
		}
		if err == nil && st.needsRecovery() {
			var r *recovery
			if r, err = readRecovery(ctx, c, s, st, st.table.clone(), partitions); err == nil {
				st.table = r.table(len(r.unheld))
			}
		}
		switch session.ClassOf(err) {
		case session.ClassOK:
			return st.table, nil
		case session.ClassNoNode:
			missing = znode.Join(o.dir, name) // unless it was replaced
		default:
			return nil, err
		}
	}
}
