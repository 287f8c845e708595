package proxy

import (
	"testing"
	"time"
)

// Passed reports the two directions separately, and does not count bytes that a Cut swallowed.
func TestPassedTellsWhoSent(t *testing.T) {
	l := listen(t, startEcho(t).addr())
	if up, down := l.Passed(); !up.IsZero() || !down.IsZero() {
		t.Errorf("before the first byte: %v and %v", up, down)
	}
	nc := connect(t, l)
	began := time.Now()
	say(t, nc, "hello")
	up, down := l.Passed()
	if up.Before(began) || down.Before(up) || down.After(time.Now()) {
		t.Errorf("of an echo: the question at %v, the answer at %v, began at %v", up, down, began)
	}
	if err := l.Cut(); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Write([]byte("lost")); err != nil {
		t.Fatal(err)
	}
	wantSilence(t, nc)
	if got, _ := l.Passed(); !got.Equal(up) {
		t.Errorf("a byte that the cut swallowed counts as passed: %v, want %v", got, up)
	}
}
