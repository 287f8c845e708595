package wire

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"testing"
)

// listOf is the answer to getChildren2 with n names of eight bytes.
func listOf(n int) []byte {
	b := Encoder(nil).Int(int32(n))
	for i := range n {
		b = b.String(fmt.Sprintf("n%07d", i))
	}
	return answer(-1000, 1, 0, append(b, make([]byte, 68)...)...)
}

// A large list costs no allocation for each name: the memory for the answer and
// its names is at most four times the answer, and three times without a slice. To see
// this test fail, have Decoder.Strings make a string of each name, or grow the buffer of
// readAnswer in steps of a mebibyte.
func TestALargeListCostsLittle(t *testing.T) {
	const n = 1 << 20
	input := listOf(n)
	cost := func(use func(*Decoder)) float64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		frame, err := readAnswer(bytes.NewReader(input), maxAnswer)
		if err != nil {
			t.Fatal(err)
		}
		d := Decoder{B: frame[20:]}
		use(&d)
		if d.Bad {
			t.Error("the list was not decoded")
		}
		runtime.ReadMemStats(&after)
		if mallocs := after.Mallocs - before.Mallocs; mallocs > n/100 {
			t.Errorf("%d allocations for %d names", mallocs, n)
		}
		return float64(after.TotalAlloc-before.TotalAlloc) / float64(len(input))
	}
	var names []string
	if got := cost(func(d *Decoder) { names = d.Strings() }); got > 4 {
		t.Errorf("a list of %d names allocates %.1f times its size, want 4 at most", n, got)
	}
	if got := cost(func(d *Decoder) { d.List() }); got > 3 {
		t.Errorf("a sequence of %d names allocates %.1f times its size, want 3 at most", n, got)
	}
	if len(names) != n || names[0] != "n0000000" || names[n-1] != "n1048575" || !slices.IsSorted(names) {
		t.Errorf("%d names, from %s to %s", len(names), names[0], names[len(names)-1])
	}
}

// A large list is decoded to the same names with blocks as without, at every border of
// a block, and a list that is cut is refused.
func TestALargeListHasAllNames(t *testing.T) {
	var want []string
	b := Encoder(nil).Int(6000)
	for i := range 6000 {
		want = append(want, fmt.Sprintf("%0*d", i%40, i)[:i%40/2])
		b = b.String(want[i])
	}
	d := Decoder{B: b}
	if got := d.Strings(); d.Bad || !slices.Equal(got, want) {
		t.Errorf("%d names (bad: %v), want %d", len(got), d.Bad, len(want))
	}
	for cut := range 3 {
		if d := (Decoder{B: b[:len(b)-1-cut*4096]}); len(d.Strings()) > 6000 || !d.Bad {
			t.Error("a list that is cut was decoded")
		}
	}
}
