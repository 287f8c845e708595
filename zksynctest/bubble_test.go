package zksynctest

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
)

// callsIn calls f with a fake test, on a goroutine that the fake test can end, and returns the fake test.
func callsIn(t *testing.T, f func(tb testing.TB)) *fakeTB {
	fake := &fakeTB{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(fake)
	}()
	<-done
	return fake
}

// A real ZooKeeper fails a test in a bubble at once, which would wait for it for ever.
func TestRealZooKeeperInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		callsIn(t, func(tb testing.TB) { RealZooKeeper(tb, 1) }).want(t, "a real ZooKeeper inside a synctest bubble", "use Start")
		callsIn(t, func(tb testing.TB) { RealShared(tb) }).want(t, "a real ZooKeeper inside a synctest bubble", "use Start")
	})
}

// A server that was started outside a bubble fails the test inside with a message that says what to do. The runtime would end
// the test binary. Breaks if Server.checkBubble or Server.Dial does not compare the bubbles.
func TestStartOutsideTheBubble(t *testing.T) {
	srv, ensemble := Start(t), StartEnsemble(t, 3)
	synctest.Test(t, func(t *testing.T) {
		const text = "call Start inside the bubble"
		callsIn(t, func(tb testing.TB) { srv.Connect(tb) }).want(t, text)
		callsIn(t, func(tb testing.TB) { srv.NewLink(tb) }).want(t, text)
		callsIn(t, func(tb testing.TB) { ensemble.Connect(tb) }).want(t, text)
		callsIn(t, func(tb testing.TB) { ensemble.ConnectTo(tb, 1) }).want(t, text)
		if _, err := srv.Dial(context.Background(), "tcp", InMemory); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("Dial: %v, want %q", err, text)
		}
	})
}
