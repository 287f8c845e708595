package zkserver

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/journal"
)

// Everything returns all persistent state of a server as comparable text.
func (s *Server) Everything() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "zxid %#x\n", s.data.Zxid)
	for _, id := range slices.Sorted(maps.Keys(s.sessions.byID)) {
		fmt.Fprintf(&b, "session %#x %v %x\n", id, s.sessions.byID[id].timeout, s.sessions.byID[id].password)
	}
	b.WriteString(s.data.Tree.Describe())
	return b.String()
}

// RewriteFloor is the size of the changes from which on the server rewrites its data file.
const RewriteFloor = journal.RewriteFloor

// Inconsistencies lists the violated invariants of an ensemble.
func (s *Server) Inconsistencies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	wrong := func(is bool, format string, args ...any) {
		if is {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	en := s.en
	if l := en.current; l != nil {
		wrong(l.deposed || !en.isMajority(l.size()), "the current leader %d has %d endpoints, deposed %v", l.leader.number, l.size(), l.deposed)
		wrong(len(l.sessions.tracked) != len(s.sessions.byID), "%d sessions, %d tracked", len(s.sessions.byID), len(l.sessions.tracked))
	}
	for _, e := range en.endpoints {
		l := e.in
		if l == nil {
			wrong(e.cutOff || e.doubt != nil, "endpoint %d looks for a leader: cut off %v, in doubt %v", e.number, e.cutOff, e.doubt != nil)
			continue
		}
		wrong(e.down, "endpoint %d is down and belongs to a leader", e.number)
		wrong(e.rep.cut != (e.cutOff || l != en.current), "endpoint %d: cut off %v, current %v, its replica is cut %v", e.number, e.cutOff, l == en.current, e.rep.cut)
		wrong(e.rep.cut && e.rep.view == nil, "endpoint %d is cut off and sees the tree as it is", e.number)
		if e == l.leader {
			_, loses := l.losesQuorum()
			wrong(e.thaw == nil && loses != (l.count != nil), "leader %d loses its quorum %v and counts %v", e.number, loses, l.count != nil)
			continue
		}
		wrong(l.has(e) && l.leader.in != l, "endpoint %d has a leader that is none", e.number)
		wrong(l.has(e) && !en.linked(e, l.leader), "endpoint %d has a leader that it cannot reach", e.number)
		_, silent := l.silent[e]
		quiet := e.thaw != nil || l.leader.thaw != nil
		wrong(l.has(e) && (silent != quiet || quiet != (e.doubt != nil)), "endpoint %d: silent %v, doubt %v, one of the two frozen %v", e.number, silent, e.doubt != nil, quiet)
		wrong(e.cutOff && e.thaw == nil && e.doubt == nil, "endpoint %d is cut off and will not notice", e.number)
	}
	return list
}

// Queued returns the number of bytes that are queued for all connections.
func (s *Server) Queued() int64 { return s.conns.queued.Load() }

// Renew makes the server replace its data file with the next write.
func (s *Server) Renew() { s.journal.Renew() }

// PasswordOf returns the password that a real server derives from a session id.
var PasswordOf = journal.PasswordOf

// Received returns the number of frames that the endpoints have received.
func (s *Server) Received() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.en.endpoints {
		n += e.stats.received
	}
	return n
}

// Version1 converts a data file without sessions to version 1 of the format.
func Version1(b []byte) []byte {
	const header, extra, batch = 16, 12, 11 // the last is the kind of the step that begins a batch
	out := binary.BigEndian.AppendUint32([]byte("zkserver"), 1)
	out = binary.BigEndian.AppendUint32(out, crc32.Checksum(out, crc32.MakeTable(crc32.Castagnoli)))
	for b = b[header:]; len(b) > 0; {
		n := int(binary.BigEndian.Uint32(b)) + extra
		if b[8] != batch {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}

// SnapshotName returns the name of the temporary file of a new snapshot.
func SnapshotName(path string) string { return journal.SnapshotName(path) }
