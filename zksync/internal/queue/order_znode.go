package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

const (
	orderPrefix  = "order-"
	ledgerPrefix = "ledger-"

	// maxOrderVersion keeps the version of the order znode from wrapping: a claim that is
	// 2^32 versions old would be accepted.
	maxOrderVersion = 1 << 30
)

// errOrderGone says that the order znode was deleted since it was opened.
var errOrderGone = errors.New("the order znode is gone")

// An orderZnode is the order znode as one view knows it, with the watches that report its
// changes and the deaths of other consumers. The data of its directory is its name, which
// has a GUID: after the directory was deleted and created again, no transaction that
// relies on the former order znode can happen.
type orderZnode struct {
	cfg     *Config
	s       *session.Session
	dir     string     // of the order znode and the ledgers
	changed *broadcast // notified when a watch fires

	mu           sync.Mutex
	path         string      // empty if it is not known
	missing      string      // the last path that did not exist
	state        *orderState // the newest at path that was seen; nil before the first one
	isKnown      bool        // no newer state is known to exist
	watch        *staleFlag  // on the order znode
	ledgersWatch *staleFlag  // on the directory
	claiming     bool        // this consumer has claimed messages, and learns of the deaths of others
	ledgers      ledgerCount // the newest that was read
	own          int         // the number of ledgers of this consumer
	recoverAt    time.Time   // no recovery is tried before: the last one had no room for all messages
}

// read returns the present state of the order znode.
func (o *orderZnode) read(ctx context.Context, path string) (*orderState, error) {
	results, err := o.s.MultiRead(ctx, o.reads(path)...)
	if err != nil {
		return nil, err
	}
	return readState(path, results)
}

// reads returns the reads of the order znode at path and of its directory, for readState.
func (o *orderZnode) reads(path string) []session.Read {
	return []session.Read{session.ReadData(path), session.ReadData(o.dir)}
}

// current returns the state of the order znode, and reads it if it is not known.
func (o *orderZnode) current(ctx context.Context) (*orderState, error) {
	// A consumer may know the state for weeks, by its own writes.
	if st := o.known(); st != nil && !o.mustRenew(st) {
		return st, nil
	}
	for round := 0; ; round++ {
		if err := o.s.Pause(ctx, round-1); err != nil {
			return nil, err
		}
		path, err := o.open(ctx)
		if err != nil {
			return nil, err
		}
		st, err := o.read(ctx, path)
		if err == nil && o.mustRenew(st) {
			// All consumers that rely on this znode fail, and open the new one.
			if err = o.renew(ctx, st); err == nil {
				err = zk.ErrNoNode
			}
		}
		if err == nil {
			o.set(st)
			return st, nil
		}
		if err = o.reopen(path, err); err != errOrderGone && session.ClassOf(err) != session.ClassBadVersion {
			return nil, err
		}
	}
}

// refresh returns the state of the order znode, which it reads if necessary. If armed, it
// also watches the directory of the ledgers and, beside other consumers, the order znode.
func (o *orderZnode) refresh(ctx context.Context, armed bool) (*orderState, error) {
	path, err := o.open(ctx)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	if o.ledgersWatch != nil && o.ledgersWatch.isStale() {
		o.isKnown = false // the number of ledgers has changed
	}
	list := (armed || o.claiming) && o.ledgersWatch.isStale()
	o.mu.Unlock()
	if list {
		_, stat, w, err := o.s.WatchChildren(ctx, o.dir)
		if err != nil {
			return nil, o.reopen(path, err)
		}
		// From now on the watch reports each death. A state that was read before the listing belongs to
		// this number of ledgers, too, if no consumer has come or gone since.
		now := countLedgers(stat)
		o.mu.Lock()
		o.isKnown = o.isKnown && o.state.ledgerCount == now
		o.count(now)
		o.ledgersWatch = o.ledgersWatch.replace(w, o.changed)
		o.mu.Unlock()
	}
	o.mu.Lock()
	// A lone consumer knows its own writes, and the watch on the ledgers reports the next
	// consumer.
	known, ledgers := o.isKnown, o.ledgers
	read := armed && o.watch.isStale() && (!known || ledgers.consumers > o.own)
	o.mu.Unlock()
	if read {
		data, stat, w, err := o.s.WatchData(ctx, path)
		if err != nil {
			return nil, o.reopen(path, err)
		}
		o.mu.Lock()
		o.watch = o.watch.replace(w, o.changed)
		o.mu.Unlock()
		// The watch on the directory has not fired, so its ledgers are the same as at the list, or with the known
		// state. Another order znode may have no count yet.
		if list || known {
			st, err := newOrderState(path, data, stat, ledgers)
			if err != nil {
				return nil, err
			}
			o.set(st)
		}
	}
	return o.current(ctx)
}

// mustRenew reports whether another order znode must take the place of the one with this state:
// before its version wraps, and if another client has emptied it. In the latter case messages may be
// free that no entry names as returned. All views list the messages again when they open another order
// znode.
func (o *orderZnode) mustRenew(st *orderState) bool {
	return st.version >= o.cfg.maxOrderVersion || st.table.emptied
}

// watchLedgers makes the following refreshes watch the directory of the ledgers, so that
// this consumer learns when another one has died. Consumers that never claim need not
// know.
func (o *orderZnode) watchLedgers() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.claiming = true
}

// mayWrite reports whether this consumer is about to write the order znode: it has a ledger, or
// must recover.
func (o *orderZnode) mayWrite(st *orderState) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.own > 0 || st.needsRecovery()
}

// countOwn notes that this consumer has created its ledger.
func (o *orderZnode) countOwn() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.own, o.isKnown = 1, false // the number of consumers has changed
}

// stop stops the watches.
func (o *orderZnode) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.watch.stopWatch()
	o.ledgersWatch.stopWatch()
}

// reopen returns the error of a request for the order znode at path. If the order znode is gone,
// the next attempt opens another one.
func (o *orderZnode) reopen(path string, err error) error {
	if session.ClassOf(err) != session.ClassNoNode {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.path, o.missing, o.isKnown = "", path, false
	return errOrderGone
}

// known returns the state of the order znode, nil if it is not known.
func (o *orderZnode) known() *orderState {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.isKnown {
		return nil
	}
	return o.state
}

// set notes the state of the order znode.
func (o *orderZnode) set(st *orderState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	// The state was read before this order znode was opened in place of the former one.
	if o.path != st.path {
		return
	}
	o.count(st.ledgerCount)
	switch last := o.state; {
	case last == nil:
	case st.czxid > last.czxid:
		// Another client has deleted the order znode and created it again under its name.
		o.recoverAt = time.Time{}
	case st.czxid < last.czxid, st.version < last.version, st.version == last.version && o.isKnown:
		// A read may be answered after a later write of this consumer was. An older state must
		// not replace the newer one, even if that is out of date by now.
		return
	}
	o.state, o.isKnown = st.with(o.ledgers), true
	// A goroutine may have looked at the former state, and sleep. No watch reports a write of
	// this consumer, which may make messages free for it, too.
	o.changed.notify()
}

// count notes a count of the ledgers that was read; o.mu is held.
func (o *orderZnode) count(ledgers ledgerCount) {
	// A state and a count may be noted in another order than they were read: a transaction
	// under way has the count of the state that it was built on. An older count would hide
	// a death, which no watch reports again.
	if !ledgers.newerThan(o.ledgers) {
		return
	}
	o.ledgers = ledgers
	if o.state != nil {
		o.state = o.state.with(ledgers)
	}
}

// forget notes that the order znode has another state by now.
func (o *orderZnode) forget(st *orderState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.isKnown && st != nil && o.state.path == st.path && o.state.version == st.version {
		o.isKnown = false
	}
}
