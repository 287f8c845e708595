package tree

import "time"

// Rules are the parts of a configuration that decide about writes.
type Rules struct {
	TTL   bool // TTL nodes are allowed
	SASL  bool // the scheme sasl is known
	Quota bool // hard limits count
	Steps bool // transactions note their steps, for a data file
	// NeverUsed is the age at which a container that never had a child goes; 0 is never.
	NeverUsed time.Duration
}

// A Store is a tree and the sequence of the transactions that change it.
type Store struct {
	*Tree
	Rules  Rules
	Zxid   int64 // of the latest transaction
	wasted int64 // zxids that were taken without a transaction
	Epoch  int64 // of the latest leader; 0 for a server that is no ensemble
	txn    Txn
}

// Latest is the latest zxid, or the beginning of the epoch if no transaction is of it.
func (s *Store) Latest() int64 { return max(s.Zxid, s.Epoch<<32) }

// NextZxid begins a transaction. The first transaction of an epoch has number 1.
func (s *Store) NextZxid() {
	s.Zxid = max(s.Zxid+s.wasted, s.Epoch<<32) + 1
	s.wasted = 0
}

// Waste takes a zxid without a transaction.
func (s *Store) Waste() { s.wasted++ }

// Begin takes the next zxid for a write with the rights of ids. The transaction is valid
// until the next call.
func (s *Store) Begin(ids []Identity, nowMs int64, multi bool) *Txn {
	s.NextZxid()
	t := &s.txn
	clear(t.Events)
	clear(t.Steps)
	clear(t.Aging)
	*t = Txn{s: s, Zxid: s.Zxid, now: nowMs, ids: ids, Multi: multi, Events: t.Events[:0], undo: t.undo[:0], Steps: t.Steps[:0], Aging: t.Aging[:0]}
	return t
}
