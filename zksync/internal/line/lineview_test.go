package line

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// front finds in one pass what sorting the line would find, also over the wrap of the counter.
func TestFront(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, start := range []int32{0, 2147483600, -2147483648} {
		for round := range 500 {
			var names []string
			for i := range r.IntN(12) {
				names = append(names, lockName(start+int32(i*(1+r.IntN(3)))))
			}
			names = append(names, "foreign", "qn-0000000001")
			r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			p := &lineView{line: &Line{Rule: LockRule}, name: names[0]}
			var ok bool
			if _, p.seq, ok = p.line.Rule.Parse(p.name); !ok {
				p.seq = start + 5 // we are not in the list
			}
			var want front
			for i, m := range p.line.Rule.sort(names) {
				if m.name != p.name && znode.Earlier(m.seq, p.seq) {
					if want.count++; want.count == 1 {
						want.first, want.leads = m.name, i == 0
					}
				}
				switch {
				case m.name == p.name:
					want.listed = true
				case znode.Earlier(m.seq, p.seq):
					want.last = want.near == ""
					want.near, want.far = m.name, want.near
				}
			}
			if got := p.front(slices.Values(names)); got != want {
				t.Fatalf("round %d: front of %s in %q is %+v, want %+v", round, p.name, names, got, want)
			}
		}
	}
}

func lockName(seq int32) string {
	return fmt.Sprintf("_c_%08x-lock-%010d", uint32(seq)*2654435761, seq)
}

func BenchmarkFront(b *testing.B) {
	var names []string
	for i := range int32(1000) {
		names = append(names, "_c_5a3c2ed44b0f4d2a9e3d3b7e2c0a1f9d-"[:27]+lockName(i))
	}
	p := &lineView{line: &Line{Rule: LockRule}, name: names[2], seq: 2}
	b.ReportAllocs()
	for b.Loop() {
		p.front(slices.Values(names))
	}
}
