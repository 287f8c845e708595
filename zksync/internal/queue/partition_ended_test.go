package queue

import "testing"

// A consumer that only takes messages writes no claims, and does not remember each directory that was deleted: only those
// that may have a part in the claim table.
func TestEndedDirectoriesWithoutClaimsAreForgotten(t *testing.T) {
	table := &claimTable{partitions: make(map[int64]*partitionClaims)}
	table.of(1)
	for name, test := range map[string]struct {
		applied *orderState
		want    int
	}{
		"no state is known": {nil, 1000},
		"one part":          {&orderState{table: table}, 1},
	} {
		l := &partitionList{applied: test.applied}
		for czxid := range int64(1000) {
			l.endCzxid(czxid)
		}
		if got := len(l.ended); got != test.want {
			t.Errorf("%s: %d directories are remembered, want %d", name, got, test.want)
		}
	}
}
