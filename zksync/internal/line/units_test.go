package line

import (
	"testing"

	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A release of units that are not held changes nothing: it keeps no memory, either.
func TestReleaseOfUnitsThatAreNotHeldKeepsNothing(t *testing.T) {
	u := &Units{pools: make(map[int]*Pool)}
	for n := 1; n <= 100; n++ {
		if err := u.Release(n); err != znode.ErrNotHeld {
			t.Errorf("Release(%d): %v, want ErrNotHeld", n, err)
		}
	}
	if len(u.pools) != 0 {
		t.Errorf("%d pools are kept", len(u.pools))
	}
}
