package main

import (
	"hash/fnv"
)

// share returns the shards of one member, out of n: each shard goes to the
// member with the greatest hash of both names (rendezvous hashing, by Thaler and
// Ravishankar). All members come to the same result from the same list, and when
// one comes or goes, only its own shards move.
func share(members []string, self string, n int) []int {
	var mine []int
	for shard := range n {
		if owner(members, shard) == self {
			mine = append(mine, shard)
		}
	}
	return mine
}

func owner(members []string, shard int) string {
	best, greatest := "", uint64(0)
	for _, m := range members {
		h := fnv.New64a()
		h.Write([]byte(m))
		h.Write([]byte{0, byte(shard >> 8), byte(shard)})
		if weight := mix(h.Sum64()); best == "" || weight > greatest {
			best, greatest = m, weight
		}
	}
	return best
}

// mix spreads the bits of an FNV hash, whose high ones hardly depend on the last
// bytes; it is the finalizer of MurmurHash3.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
