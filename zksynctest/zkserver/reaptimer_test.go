package zkserver

import (
	"testing"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// No timer runs for containers and TTL nodes that are not due to be deleted. In an otherwise idle
// bubble, a reaper that finds nothing every minute would keep the bubble running.
func TestNoTimerForWhatStays(t *testing.T) {
	s, err := New(Config{ExtendedTypes: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	make := func(op OpCode, path string, flags int32, ttl int64) {
		t.Helper()
		r := jute.Request{Op: op, Path: path, ACL: jute.OpenACL, Flags: flags, TTL: ttl}
		if err := s.operate("create", path, func(t *tree.Txn) Code {
			_, _, code := t.Create(&r, 0)
			return code
		}); err != nil {
			t.Fatal(err)
		}
	}
	timer := func(want bool) {
		t.Helper()
		s.mu.Lock()
		defer s.mu.Unlock()
		if got := s.agenda.timer != nil; got != want {
			t.Fatalf("a timer is set: %v, want %v", got, want)
		}
	}
	timer(false)
	make(OpCreateContainer, "/c", jute.FlagContainer, -1)
	make(OpCreate, "/c/x", 0, -1)
	timer(false)
	if err := s.Delete("/c/x"); err != nil {
		t.Fatal(err)
	}
	timer(true)
	if n := s.ReapNow(); n != 1 {
		t.Fatalf("%d reaped", n)
	}
	s.onTimerNow()
	timer(false)
	make(OpCreateTTL, "/ttl", jute.FlagTTL, 1)
	timer(true)
	make(OpCreate, "/ttl/x", 0, -1)
	s.onTimerNow()
	timer(false)
}

// onTimerNow runs the timer with all its actions due.
func (s *Server) onTimerNow() {
	s.mu.Lock()
	s.agenda.reapDue = 1
	s.base = s.base.Add(-s.cfg.ReapInterval)
	s.mu.Unlock()
	s.onTimer()
}
