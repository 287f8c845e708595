package zkserver

import (
	"slices"
	"testing"
)

// The passwords of sessions are those of java.util.Random, which a real server uses.
func TestPasswords(t *testing.T) {
	a, b := passwordOf(1), passwordOf(2)
	if a == b || a != passwordOf(1) || slices.Equal(a[:], make([]byte, 16)) {
		t.Fatalf("%x %x", a, b)
	}
}
