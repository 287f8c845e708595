package tree

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The watchers of a path stay in the order of their arrival while connections come, go and are used up. The test
// compares them with a plain list.
func TestWatchersStayInOrder(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var w watchers
		var want, known []*Client
		most := 1 + rng.IntN(4*longList)
		for step := range 2000 {
			switch n := rng.IntN(100); {
			case n == 0:
				parity := uint64(rng.IntN(2))
				stays := func(c *Client) bool { return c.told%2 == parity }
				w.filter(stays)
				want = slices.DeleteFunc(want, func(c *Client) bool { return !stays(c) })
			case n == 1:
				var seen []*Client
				w.filter(func(c *Client) bool { seen = append(seen, c); return true })
				if !slices.Equal(seen, want) {
					t.Fatalf("seed %d, step %d: some have not been asked", seed, step)
				}
			case n < 55 && len(want) < most:
				c := &Client{told: uint64(step)}
				known = append(known, c)
				want = append(want, c)
				w.add(c)
			case len(known) > 0: // clients that have left too
				c := known[rng.IntN(len(known))]
				w.remove(c)
				want = slices.DeleteFunc(want, func(other *Client) bool { return other == c })
			}
			if got := slices.Collect(w.all()); !slices.Equal(got, want) || w.size() != len(want) {
				t.Fatalf("seed %d, step %d: %d are there, of %d", seed, step, w.size(), len(want))
			}
			if len(w.list) > 2*len(want)+longList {
				t.Fatalf("seed %d, step %d: a list of %d for %d", seed, step, len(w.list), len(want))
			}
		}
	}
}

// crowd has n clients watch one path, of which all but the first and the last are listed
// in no particular order.
func crowd(n int) (*Watches, []*Client) {
	w := NewWatches(false)
	list := make([]*Client, n)
	for i := range list {
		list[i] = &Client{}
		w.Arm(list[i], DataWatch, "/", OneShot)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	rng.Shuffle(n-2, func(i, j int) { list[i+1], list[j+1] = list[j+1], list[i+1] })
	return &w, list
}

// The sessions of a crowd that watches one path leave the path without a search through the crowd. With a search
// through the crowd for each it would take minutes.
func TestACrowdLeavesAPath(t *testing.T) {
	const n, limit = 300_000, 10 * time.Second
	w, list := crowd(n)
	paths := w.tables[DataWatch].paths
	begin := time.Now()
	for i, c := range list {
		w.Drop(c)
		if left := paths["/"].size(); left != n-i-1 {
			t.Fatalf("%d are left, want %d", left, n-i-1)
		}
		if room := cap(paths["/"].list); i >= n-10 && room > 64 {
			t.Fatalf("the last of %d have room for %d", n, room)
		}
		if took := time.Since(begin); took > limit {
			t.Fatalf("%d of %d have left after %v", i, n, took)
		}
	}
	if len(paths) != 0 {
		t.Errorf("%d paths are watched by nobody", len(paths))
	}
}

// BenchmarkLeaveAPath has one client of many leave a path, and another client come.
func BenchmarkLeaveAPath(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w, list := crowd(n)
			for i := 0; b.Loop(); i++ {
				w.Drop(list[i%n])
				list[i%n] = &Client{}
				w.Arm(list[i%n], DataWatch, "/", OneShot)
			}
		})
	}
}
