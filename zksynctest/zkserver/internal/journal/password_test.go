package journal

import (
	"slices"
	"testing"
)

// The passwords of old sessions are the numbers of java.util.Random, as in a real server.
func TestPasswords(t *testing.T) {
	a, b := PasswordOf(1), PasswordOf(2)
	if a == b || a != PasswordOf(1) || slices.Equal(a[:], make([]byte, 16)) {
		t.Fatalf("%x %x", a, b)
	}
}
