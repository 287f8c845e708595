package simulation_test

import (
	"slices"
	"testing"
	"time"
)

// maxShrinking bounds the time of shrinking a failure.
const maxShrinking = 90 * time.Second

// hits runs a plan the given number of times and returns the number of failures, the number of
// runs, and the outcome of the first failure. It stops after enough failures.
func hits(t *testing.T, p *plan, runs, enough int) (failed, ran int, first *outcome) {
	for ran < runs && failed < enough {
		out := simulate(t, p)
		ran++
		if len(out.wrong) > 0 {
			failed++
			if first == nil {
				first = out
			}
		}
	}
	return failed, ran, first
}

// shrink removes parts of a plan while the plan still fails in one of the given number of runs. It
// returns the smallest plan and the outcome of a failed run of it.
func shrink(t *testing.T, p *plan, out *outcome, runs int) (*plan, *outcome) {
	end := time.Now().Add(maxShrinking)
	try := func(q *plan) bool {
		if time.Now().After(end) {
			return false
		}
		n, _, failure := hits(t, q, runs, 1)
		if n > 0 {
			p, out = q, failure
		}
		return n > 0
	}
	for before := p.size() + 1; p.size() < before; {
		before = p.size()
		for i := range p.clients {
			if len(p.clients[i]) > 0 {
				q := p.clone()
				q.clients[i] = nil
				try(q)
			}
		}
		leaveOut(len(p.faults), func(from, to int) bool {
			q := p.clone()
			q.faults = slices.Delete(slices.Clone(q.faults), from, to)
			return try(q)
		})
		for i := range p.clients {
			leaveOut(len(p.clients[i]), func(from, to int) bool {
				q := p.clone()
				q.clients[i] = slices.Delete(slices.Clone(q.clients[i]), from, to)
				return try(q)
			})
		}
	}
	return p, out
}

// leaveOut tries to remove parts of n items, from the back, in smaller and smaller parts.
func leaveOut(n int, try func(from, to int) bool) {
	for part := (n + 1) / 2; part > 0; part /= 2 {
		for to := n; to > 0; to -= part {
			if from := max(0, to-part); try(from, to) {
				n -= to - from
			}
		}
	}
}

// Shrinking removes every item that the failure does not need, and keeps the others.
func TestLeaveOut(t *testing.T) {
	left := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	leaveOut(len(left), func(from, to int) bool {
		try := slices.Delete(slices.Clone(left), from, to)
		if !slices.Contains(try, 3) || !slices.Contains(try, 7) {
			return false
		}
		left = try
		return true
	})
	if !slices.Equal(left, []int{3, 7}) {
		t.Errorf("%v are left, want 3 and 7", left)
	}
}
