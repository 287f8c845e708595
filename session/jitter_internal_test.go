package session

import (
	"slices"
	"testing"
	"time"
)

// The jitter is the same for the same session id, and differs between session ids.
func TestJitter(t *testing.T) {
	draw := func(ids ...int64) (all []time.Duration) {
		var j jitter
		for _, id := range ids {
			j.seed(id)
		}
		for range 100 {
			d := j.spread(time.Second)
			if d < time.Second/2 || d > 3*time.Second/2 {
				t.Errorf("a second was spread to %v", d)
			}
			all = append(all, d)
		}
		return all
	}
	if !slices.Equal(draw(7), draw(7)) {
		t.Error("the same session does not pause alike")
	}
	if slices.Equal(draw(7), draw(8)) {
		t.Error("two sessions pause alike")
	}
	if slices.Equal(draw(), draw()) {
		t.Error("two clients without a session pause alike")
	}
}
