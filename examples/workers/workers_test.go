package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/internal/bounds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// When a member comes or goes, only its own shards move, and its share is about as large as the other shares.
func TestOnlyTheNecessaryShareMoves(t *testing.T) {
	const n = 1200
	all := []string{"anna", "bert", "cleo", "dora", "emil", "fred"}
	for size := 1; size < len(all); size++ {
		few, more := all[:size], all[:size+1]
		moved := 0
		for shard := range n {
			before, after := owner(few, shard), owner(more, shard)
			if before != after {
				moved++
				if after != more[size] {
					t.Fatalf("shard %d went from %s to %s though only %s came", shard, before, after, more[size])
				}
			}
		}
		fair := n / (size + 1)
		if moved < fair*3/4 || moved > fair*5/4 {
			t.Errorf("with %s, %d of %d shards moved, want about %d", more[size], moved, n, fair)
		}
		var shared []int
		for _, m := range more {
			shared = append(shared, share(more, m, n)...)
		}
		slices.Sort(shared)
		if len(shared) != n || len(slices.Compact(shared)) != n {
			t.Errorf("%d members share %d of %d shards", size+1, len(shared), n)
		}
	}
	if share(nil, "anna", 3) != nil {
		t.Error("nobody has a share")
	}
}

// When a worker leaves or joins, the shards move to the workers that are there.
func TestWorkersComeAndGo(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := run(t.Context(), 6*time.Second, &out); err != nil {
			t.Error(err)
		}
		text := out.String()
		_, without, _ := strings.Cut(text, "anna leaves")
		if !strings.Contains(text, "anna takes") || strings.Contains(without, "anna takes") ||
			!strings.Contains(without, "bert takes") && !strings.Contains(without, "cleo takes") ||
			!strings.Contains(without, "dora takes") || !strings.Contains(text, "never by two at once") {
			t.Errorf("the work was not shared out anew in\n%s", text)
		}
	})
}
