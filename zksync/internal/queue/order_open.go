package queue

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// open returns the path of the order znode, which it creates if necessary.
func (o *orderZnode) open(ctx context.Context) (string, error) {
	o.mu.Lock()
	path, missing := o.path, o.missing
	o.mu.Unlock()
	for round := 0; path == ""; round++ {
		if err := o.s.Pause(ctx, round-1); err != nil {
			return "", err
		}
		// By multiRead, which shows that the servers know the operation: see openLedger.
		results, err := o.s.MultiRead(ctx, session.ReadData(o.dir))
		if err != nil {
			results = []session.ReadResult{{Err: err}}
		}
		dir := results[0]
		named := znode.Join(o.dir, string(dir.Data))
		switch err = dir.Err; {
		case err == nil && strings.HasPrefix(string(dir.Data), orderPrefix) && named != missing:
			// missing is excluded: a server that lags may still have the name of an order znode
			// that is gone, and every server has it if another client has deleted only the znode.
			path = named
		case err == nil:
			path, err = o.rename(ctx, dir.Stat.Version, missing)
		case session.ClassOf(err) == session.ClassNoNode:
			// An ordinary znode: a container that was reaped and created again would have neither
			// order znode nor ledgers.
			path, err = o.createFirst(ctx, func(name string) any { return &zk.CreateRequest{Path: o.dir, Data: []byte(name)} })
			if session.ClassOf(err) == session.ClassNoNode {
				err = o.cfg.MakeDir(ctx, o.s, o.cfg.Path)
			}
		}
		switch session.ClassOf(err) {
		case session.ClassOK, session.ClassNodeExists, session.ClassBadVersion, session.ClassNoNode, session.ClassConnectionLost:
			// If there is no path yet, this consumer or another one has written the name: read it.
		default:
			return "", err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.path != path {
		// The directory may be a new one, too, which counts its deletions from zero.
		o.path, o.state, o.isKnown, o.ledgers, o.recoverAt = path, nil, false, ledgerCount{}, time.Time{}
	}
	return path, nil
}

// rename writes the name of the order znode to its directory, which has another name at a
// version: another client has deleted the order znode, or overwritten its name. If the
// server lags, the version is an old one, and the request is refused. It returns the path of
// the order znode.
func (o *orderZnode) rename(ctx context.Context, version int32, missing string) (path string, err error) {
	name, err := o.unnamed(ctx, missing)
	if err != nil {
		return "", err
	}
	if name == "" {
		return o.createFirst(ctx, func(name string) any { return &zk.SetDataRequest{Path: o.dir, Data: []byte(name), Version: version} })
	}
	if _, err = o.s.Set(ctx, o.dir, []byte(name), version); err == nil {
		path = znode.Join(o.dir, name)
	}
	return path, err
}

// unnamed returns the name of an order znode at another path than missing, which has the claims of all consumers
// although its name was overwritten. It returns an empty name if there is none.
func (o *orderZnode) unnamed(ctx context.Context, missing string) (name string, err error) {
	names, _, err := o.s.Children(ctx, o.dir)
	i := slices.IndexFunc(names, func(name string) bool {
		return strings.HasPrefix(name, orderPrefix) && znode.Join(o.dir, name) != missing
	})
	if err != nil || i < 0 {
		return "", err
	}
	return names[i], nil
}

// createFirst creates an order znode without a predecessor, together with the write of its
// name to the directory. It returns the path of the order znode.
func (o *orderZnode) createFirst(ctx context.Context, write func(name string) any) (path string, err error) {
	name, later := orderPrefix+znode.NewGUID(), o.cfg.child(laterName)
	// The messages of Retry outlive an order znode that another client has deleted, and consumers look
	// for them only if the table says so. No read can tell: a Retry may follow it. So the transaction
	// creates their directory and deletes it, which fails if it exists.
	results, err := o.create(ctx, name, &claimTable{},
		&zk.CreateRequest{Path: later}, &zk.DeleteRequest{Path: later, Version: -1}, write(name))
	if at, class := session.FailedOp(results), session.ClassOf(err); at == 0 && class != session.ClassNoNode || at == 1 {
		// It exists, or this client may not create it.
		exists, _, failed := o.s.Exists(ctx, later)
		if failed != nil {
			return "", failed
		}
		_, err = o.create(ctx, name, &claimTable{later: exists}, write(name))
	}
	if err != nil {
		return "", err
	}
	return znode.Join(o.dir, name), nil
}

// create creates an order znode together with other operations.
func (o *orderZnode) create(ctx context.Context, name string, t *claimTable, with ...any) ([]zk.MultiResponse, error) {
	return o.s.Multi(ctx, append(with, &zk.CreateRequest{Path: znode.Join(o.dir, name), Data: t.encode()})...)
}

// renew creates another order znode with the same table.
func (o *orderZnode) renew(ctx context.Context, st *orderState) error {
	name := orderPrefix + znode.NewGUID()
	table := st.table.clone()
	table.recovered++ // the deletion of the order znode looks like the deletion of a ledger
	// The deletion at the version of the table: a claim since the read makes the transaction
	// fail, and is not lost.
	_, err := o.create(ctx, name, table,
		&zk.DeleteRequest{Path: st.path, Version: st.version},
		&zk.SetDataRequest{Path: o.dir, Data: []byte(name), Version: -1})
	return err
}
