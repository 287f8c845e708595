package queue

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A claimTable is the data of the order znode: which messages are claimed, and how often
// the messages that were given back had been delivered. The version of the znode puts
// all claims in order.
//
//	             claim                 settle
//	unclaimed ----------> claimed ---------------> gone
//	                      |     ^
//	   give back, recover |     | claim
//	                      v     |
//	                     returned
//
// A partition in which new messages come last has a cursor, the number of the last
// message that was claimed: messages after the cursor are unclaimed. A message up to the
// cursor is claimed unless it has an entry that says returned. In other partitions a
// message without an entry is unclaimed.
//
// A claimed message is in the ledger of its consumer. When the ledger of a dead consumer
// has gone, recovery makes its messages returned.
type claimTable struct {
	emptied    bool                       // another client has emptied the order znode
	recovered  int32                      // how many ledgers had been deleted when recovery was complete
	later      bool                       // there is a directory of messages that Retry has put
	partitions map[int64]*partitionClaims // by the czxid of the directory

	// For an edit: if full, giveBack leaves messages to a recovery. Then it sets left.
	full, left bool
}

// partitionClaims is the part of a claimTable for one partition.
type partitionClaims struct {
	hasCursor bool
	cursor    int32
	entries   map[string]claimEntry // by name
}

// isEmpty reports whether all messages are unclaimed.
func (p *partitionClaims) isEmpty() bool { return !p.hasCursor && len(p.entries) == 0 }

// A claimEntry is the state of one message.
type claimEntry struct {
	state      claimState
	deliveries int // that have ended without an Ack
}

// A claimState is the state of a message in a claimTable.
type claimState byte

const (
	unclaimed claimState = 'u'
	claimed   claimState = 'c'
	returned  claimState = 'r'
)

// tableForm begins the data of the order znode.
const tableForm = "zksync-claims/1"

// errForeignTable has ClassFinal: unlike an internal error of a server, it does not pass.
var errForeignTable = fmt.Errorf("the order znode has data that this version does not know (%w)", zk.ErrBadArguments)

// forgetEdges removes the entries of sorted names that are the first or last ones of a range, or alone.
func (p *partitionClaims) forgetEdges(names []string) {
	forget := func(name string, neighbour int64) {
		beside, numbered := splitName(name)
		beside.n += neighbour
		e, ok := p.entries[name]
		if next, known := p.entries[beside.String()]; ok && (!numbered || !known || next != e) {
			delete(p.entries, name)
		}
	}
	for _, name := range names {
		forget(name, -1)
	}
	for _, name := range slices.Backward(names) {
		forget(name, 1)
	}
}

// encode returns the data of the order znode.
func (t *claimTable) encode() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d %t\n", tableForm, t.recovered, t.later)
	for _, czxid := range slices.Sorted(maps.Keys(t.partitions)) {
		p := t.partitions[czxid]
		if p.isEmpty() {
			continue // without a part, too, all messages are unclaimed
		}
		cursor := "-"
		if p.hasCursor {
			cursor = strconv.Itoa(int(p.cursor))
		}
		fmt.Fprintf(&b, "%x %s\n", czxid, cursor)
		// Names with the same state share a line, in which a range is as short as one name.
		names := make(map[claimEntry][]string)
		for name, e := range p.entries {
			names[e] = append(names[e], name)
		}
		for e, some := range names {
			fmt.Fprintf(&b, " %c %d %s\n", e.state, e.deliveries, encodeNames(some))
		}
	}
	return []byte(b.String())
}

// decodeTable is the reverse of encode.
func decodeTable(data []byte) (*claimTable, error) {
	t := &claimTable{partitions: make(map[int64]*partitionClaims)}
	if len(data) == 0 {
		// Another client has emptied the order znode. Another one takes its place (see mustRenew), and a
		// recovery makes the messages in ledgers claimed.
		t.emptied, t.recovered, t.later = true, -1, true
		return t, nil
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if _, err := fmt.Sscanf(lines[0], tableForm+" %d %t", &t.recovered, &t.later); err != nil {
		return nil, fmt.Errorf("%w: %q", errForeignTable, lines[0])
	}
	var p *partitionClaims
	for _, line := range lines[1:] {
		var err error
		if rest, ok := strings.CutPrefix(line, " "); ok && p != nil {
			err = p.decodeEntries(rest)
		} else {
			p, err = t.decodePartition(line)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errForeignTable, err)
		}
	}
	return t, nil
}

func (t *claimTable) decodePartition(line string) (*partitionClaims, error) {
	hex, cursor, _ := strings.Cut(line, " ")
	czxid, err := strconv.ParseInt(hex, 16, 64)
	if err != nil {
		return nil, err
	}
	p := t.of(czxid)
	if cursor != "-" {
		n, err := strconv.ParseInt(cursor, 10, 32)
		if err != nil {
			return nil, err
		}
		p.hasCursor, p.cursor = true, int32(n)
	}
	return p, nil
}

func (p *partitionClaims) decodeEntries(line string) error {
	parts := strings.SplitN(line, " ", 3)
	// A state of a later version of this package must not be taken for one of these.
	if len(parts) < 3 || parts[0] != string(claimed) && parts[0] != string(returned) {
		return fmt.Errorf("no entries: %q", line)
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return err
	}
	e := claimEntry{state: claimState(parts[0][0]), deliveries: n}
	return decodeNames(parts[2], func(name string) { p.entries[name] = e })
}

// clone returns a copy, for the transaction that changes the table. Its edits have not begun.
func (t *claimTable) clone() *claimTable {
	// A deep copy, because a table of an orderState never changes: goroutines read it without
	// a lock.
	c := &claimTable{recovered: t.recovered, later: t.later, partitions: make(map[int64]*partitionClaims, len(t.partitions))}
	for czxid, p := range t.partitions {
		q := *p
		q.entries = maps.Clone(p.entries)
		c.partitions[czxid] = &q
	}
	return c
}

// of returns the part of a partition, which it creates if necessary.
func (t *claimTable) of(czxid int64) *partitionClaims {
	p := t.partitions[czxid]
	if p == nil {
		p = &partitionClaims{entries: make(map[string]claimEntry)}
		t.partitions[czxid] = p
	}
	return p
}

// baseSize returns the size of the data of the table without entries.
func (t *claimTable) baseSize() int {
	base := t.clone()
	for _, p := range base.partitions {
		clear(p.entries)
	}
	return len(base.encode())
}

// entry returns the state of a message that was listed.
func (t *claimTable) entry(m message) claimEntry {
	p := t.partitions[m.czxid]
	if p == nil {
		return claimEntry{state: unclaimed}
	}
	if e, ok := p.entries[m.Name]; ok {
		return e
	}
	if p.hasCursor && m.byCursor() && !znode.Earlier(p.cursor, m.Seq) {
		return claimEntry{state: claimed}
	}
	return claimEntry{state: unclaimed}
}

// hasEntry reports whether the table has an entry for a message.
func (t *claimTable) hasEntry(k claimKey) bool {
	p := t.partitions[k.czxid]
	if p == nil {
		return false
	}
	_, ok := p.entries[k.name]
	return ok
}

// isFree reports whether a message may be claimed.
func (t *claimTable) isFree(m message) bool { return t.entry(m).state != claimed }

// claim makes a message claimed.
func (t *claimTable) claim(m message) {
	p, e := t.of(m.czxid), t.entry(m)
	switch {
	case e.state == returned || !m.byCursor():
		// The cursor says nothing about this message, or is past it already.
		p.entries[m.Name] = claimEntry{claimed, e.deliveries}
	case !p.hasCursor || znode.Earlier(p.cursor, m.Seq):
		p.hasCursor, p.cursor = true, m.Seq
	}
}

// keepFree keeps a message free that no consumer has claimed, although the cursor may be
// past it since a claim. In a full table it becomes claimed, like a message that is given back.
func (t *claimTable) keepFree(m message) {
	// A message after the cursor is free without an entry, and entries make the table long.
	if t.entry(m).state == claimed {
		t.giveBack(m.key(), 0)
	}
}

// giveBack makes a claimed message returned. ended is the number of its deliveries that
// have ended since the claim. In a full table the message stays claimed: a new entry, and the entry of one
// message in a range of others, makes the table longer.
func (t *claimTable) giveBack(k claimKey, ended int) {
	if t.full {
		t.left = true
		return
	}
	p := t.of(k.czxid)
	// A claimed message has an entry, with its earlier deliveries, if it was returned before.
	p.entries[k.name] = claimEntry{returned, p.entries[k.name].deliveries + ended}
}

// forget removes the entry of a message that is gone.
func (t *claimTable) forget(k claimKey) {
	if p := t.partitions[k.czxid]; p != nil {
		delete(p.entries, k.name)
	}
}
