package tree

import "testing"

// The scheme ip accepts the addresses that a Java server accepts, with leading zeros and plus signs.
func TestValidIP(t *testing.T) {
	for id, want := range map[string]bool{
		"127.0.0.1": true, "+127.0.0.01/8": true, "127.0.0.1/33": false, "127.0.0": false, "++1.0.0.1": false, "1.2.3.256": false, "": false,
	} {
		if got := validIP(id); got != want {
			t.Errorf("%q: %v, want %v", id, got, want)
		}
	}
}
