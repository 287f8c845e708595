package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-zksync/toolkit/internal/bounds"
)

// A resource that refuses smaller tokens is not written to by a holder that has lost its hold.
func TestResourceRefusesOldTokens(t *testing.T) {
	r := newResource()
	steps := []struct {
		what string
		err  error
		ok   bool
	}{
		{"first write", r.write("w1", 5, 1, false), true},
		{"same token again", r.write("w1", 5, 2, false), true},
		{"newer write", r.write("w2", 7, 3, false), true},
		{"older write", r.write("w1", 5, 4, false), false},
		{"older late write", r.write("w1", 6, 4, true), false},
		{"newer again", r.write("w2", 7, 4, false), true},
	}
	for _, s := range steps {
		if s.ok != (s.err == nil) || !s.ok && !strings.Contains(s.err.Error(), "is older than 7") {
			t.Errorf("%s: error %v", s.what, s.err)
		}
	}
	if _, err := r.read("w3", 9); err != nil {
		t.Error(err)
	}
	if err := r.write("w2", 7, 5, false); err == nil {
		t.Error("a write was accepted although somebody newer has read: an update would be lost")
	}
	h := r.past
	if h.value != 4 || h.writes != 4 || h.late != 0 || len(h.refusals) != 3 {
		t.Errorf("history %+v", h)
	}
}

// overtaken returns when a write with a greater token arrives.
func TestOvertaken(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		r := newResource()
		seen := make(chan bool, 1)
		go func() { seen <- r.overtaken(t.Context(), 5) }()
		for _, token := range []int64{3, 5} {
			r.write("w1", token, 1, false)
			synctest.Wait()
			if len(seen) != 0 {
				t.Fatalf("overtaken by token %d", token)
			}
		}
		r.write("w2", 6, 1, false)
		if !<-seen {
			t.Error("not overtaken by a newer token")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if r.overtaken(ctx, 6) {
			t.Error("overtaken by nobody")
		}
	})
}
