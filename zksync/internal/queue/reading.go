package queue

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
)

// A reading is a message that a Take has picked, and whose removal has no outcome yet. The mutex of the
// partitionList guards it.
type reading struct {
	ref   messageRef
	turn  chan struct{} // has a token when the removal may be the next one to be sent
	entry *commit.Entry // of the removal; nil before it is sent
}

// A readingList puts the removals of the Takes of a view in the order of their messages: a removal is sent when no
// earlier message waits or is read, and it happens only if the removals before it have happened. Otherwise
// a Take could return a message while an earlier one, whose read or removal has failed, stays for another process.
// The mutex of the partitionList guards it.
type readingList struct {
	unsent []*reading // in the order of their messages
	sent   []*reading // in the order of sending
}

// compare compares messages of all partitions.
func (a *reading) compare(b *reading) int {
	return cmp.Or(cmp.Compare(a.ref.partition.key, b.ref.partition.key), compareItems(a.ref.Item, b.ref.Item))
}

// add adds a message that was picked.
func (l *readingList) add(r messageRef) *reading {
	rd := &reading{ref: r, turn: make(chan struct{}, 1)}
	i, _ := slices.BinarySearchFunc(l.unsent, rd, (*reading).compare)
	l.unsent = slices.Insert(l.unsent, i, rd)
	l.signal()
	return rd
}

// signal wakes the Take whose removal may be the next one to be sent.
func (l *readingList) signal() {
	if len(l.unsent) > 0 {
		select {
		case l.unsent[0].turn <- struct{}{}:
		default:
		}
	}
}

// remove removes a reading from both lists.
func (l *readingList) remove(rd *reading) {
	is := func(other *reading) bool { return other == rd }
	l.unsent, l.sent = slices.DeleteFunc(l.unsent, is), slices.DeleteFunc(l.sent, is)
	l.signal()
}

// endReading ends a reading. Its message waits again by now, or is gone or skipped.
func (l *partitionList) endReading(rd *reading) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readings.remove(rd)
}

// send sends the removal of a message at its turn, for which it waits until ctx ends; it calls wait before it waits. It
// returns nil without an error if the Take has to pick another message, because an earlier one waits.
func (l *partitionList) send(ctx context.Context, rd *reading, tx commit.Tx, wait func(context.Context) error) (*commit.Entry, error) {
	for {
		e, again := l.trySend(rd, tx)
		if e != nil || again {
			return e, nil
		}
		if err := wait(ctx); err != nil {
			return nil, err
		}
		select {
		case <-rd.turn:
		case <-ctx.Done():
			return nil, session.Cancelled(ctx)
		}
	}
}

// trySend sends the removal of a message if it is its turn, and reports whether an earlier message waits.
func (l *partitionList) trySend(rd *reading, tx commit.Tx) (e *commit.Entry, again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &l.readings
	if o.unsent[0] != rd {
		return nil, false
	}
	if n := len(o.sent); n > 0 {
		tx.After = o.sent[n-1].entry
	}
	if l.hasEarlier(rd) {
		return nil, true
	}
	rd.entry = l.cfg.Removals.Start(tx)[0]
	o.unsent, o.sent = o.unsent[1:], append(o.sent, rd)
	o.signal()
	return rd.entry, false
}

// hasEarlier reports whether a message ahead of a picked one waits, or may wait after the next listing; l.mu is held. It
// goes by the newest state, and not by the state of the pick, which would drop messages that were returned since.
func (l *partitionList) hasEarlier(rd *reading) bool {
	now := time.Now().UnixMilli()
	for _, p := range l.all {
		if p.key > rd.ref.partition.key {
			break
		}
		if p.unlisted {
			return true
		}
		if p.hasFree(l.applied, now) {
			first, _ := p.waiting.first()
			if (&reading{ref: p.ref(first)}).compare(rd) < 0 {
				return true
			}
		}
	}
	return false
}
