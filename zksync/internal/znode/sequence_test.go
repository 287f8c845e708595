package znode

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// A sequence number is parsed only from a name that a server would give.
func FuzzSequence(f *testing.F) {
	for _, name := range []string{"a-lock-0000000001", "-lock--000000001", "a-lock--2147483648", "__lock__2147483647", "x-lock-+000000001", "x-lock-00000_0001", "-lock-99999999999", "-lock-000000000"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, mark := range []string{"-lock-", "__lock__"} {
			seq, ok := ParseSequence(name, mark)
			if !ok {
				continue
			}
			digits := name[strings.LastIndex(name, mark)+len(mark):]
			if want := fmt.Sprintf("%010d", seq); strings.TrimLeft(digits, "-0") != strings.TrimLeft(want, "-0") {
				t.Errorf("%q has number %d", name, seq)
			}
		}
	})
}

// The sequence number of a znode is parsed from its name, with its sign, and names without one are refused.
func TestSequence(t *testing.T) {
	for name, want := range map[string]int32{
		"_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-0000000012": 12,
		"a-lock-2147483647":                 math.MaxInt32,
		"a-lock--2147483648":                math.MinInt32,
		"a-lock--000000005":                 -5,
		"x-lock-0000000001-lock-0000000002": 2,
	} {
		if seq, ok := ParseSequence(name, "-lock-"); !ok || seq != want {
			t.Errorf("%q has number %d, %v", name, seq, ok)
		}
	}
	for _, name := range []string{"a-lock-", "a-lock-1", "a-lock-000000000", "a-lock-2147483648", "a-lock-+000000001", "a-lock-00000000x1", "a"} {
		if seq, ok := ParseSequence(name, "-lock-"); ok {
			t.Errorf("%q has number %d", name, seq)
		}
	}
	for _, ordered := range [][2]int32{{1, 2}, {0, math.MaxInt32}, {math.MaxInt32, math.MinInt32}, {math.MaxInt32 - 5, math.MinInt32 + 5}, {-1, 0}} {
		if a, b := ordered[0], ordered[1]; !Earlier(a, b) || Earlier(b, a) || Earlier(a, a) {
			t.Errorf("%d does not come before %d", a, b)
		}
	}
}
