package tree

import (
	"math"
	"testing"
)

// A sequential name is the prefix and the number with ten digits, or the sign and nine.
func TestSequenceName(t *testing.T) {
	for n, want := range map[int32]string{
		0: "x0000000000", 7: "x0000000007", math.MaxInt32: "x2147483647",
		-1: "x-000000001", math.MinInt32: "x-2147483648",
	} {
		if got := sequenceName("x", n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// Exactly the paths that a real server accepts are valid.
func TestValidPath(t *testing.T) {
	for _, path := range []string{"/", "/a", "/a/b", "/...", "/a b", "/ä/世", "/.a", "/a./b", "/\uf900", "/\uffef"} {
		if !validPath(path) {
			t.Errorf("%q is refused", path)
		}
	}
	for _, path := range []string{
		"", "a", "//", "/a/", "/a//b", "/.", "/..", "/a/./b", "/../a", "/\x00", "/\x1f", "/\x7f", "/\u009f",
		"/\ue000", "/\uf8ff", "/\ufff0", "/\U00010000", "/\xc3", "/\xed\xa0\x80",
	} {
		if validPath(path) {
			t.Errorf("%q is accepted", path)
		}
	}
}
