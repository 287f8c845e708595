package zksynctest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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

// Connect on a Link of another bubble fails at once, with a message that says what to do. Breaks if Link.Connect does not compare
// the bubbles.
func TestLinkOfAnotherBubble(t *testing.T) {
	began := time.Now()
	srv := Start(t)
	for _, link := range []*Link{srv.NewLink(t), NewLink(srv.Dial)} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			callsIn(t, func(tb testing.TB) { link.Connect(tb) }).want(t, "inside the bubble that uses the")
			if took := time.Since(began); took > 0 {
				t.Errorf("the call took %v", took)
			}
		})
	}
	var inside *Link
	synctest.Test(t, func(t *testing.T) { inside = Start(t).NewLink(t) })
	callsIn(t, func(tb testing.TB) { inside.Connect(tb) }).want(t, "inside the bubble that uses the")
	if took := time.Since(began); took >= connectTimeout {
		t.Errorf("the calls took %v", took)
	}
}

// Connect and NewLink on a closed server fail at once, with a message that says what to do. Breaks if Server.check does not ask
// whether the server is closed.
func TestConnectToAClosedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, ensemble := Start(t), StartEnsemble(t, 3)
		link := srv.NewLink(t)
		if err := errors.Join(srv.Close(), ensemble.Close()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for _, call := range []func(tb testing.TB){
			func(tb testing.TB) { srv.Connect(tb) },
			func(tb testing.TB) { srv.NewLink(tb) },
			func(tb testing.TB) { link.Connect(tb) },
			func(tb testing.TB) { ensemble.Connect(tb) },
			func(tb testing.TB) { ensemble.ConnectTo(tb, 3) },
		} {
			callsIn(t, call).want(t, "the server was closed; start another server")
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("the calls took %v", took)
		}
	})
}

// Connect to a stopped server waits for the start of the server.
func TestConnectToAStoppedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, ensemble := Start(t), StartEnsemble(t, 3)
		srv.Stop()
		ensemble.Stop()
		time.AfterFunc(10*time.Second, func() {
			if err := errors.Join(srv.Start(), ensemble.Server.Start()); err != nil {
				t.Error(err)
			}
		})
		srv.Connect(t)
		ensemble.Connect(t)
	})
}

// A call inside a bubble with the test outside the bubble fails that test with a message that says what to do. The runtime would
// end the test binary. Breaks if checkTest calls no isOuter.
func TestTheOuterTestInABubble(t *testing.T) {
	outer := t
	synctest.Test(t, func(t *testing.T) {
		const text = "pass the t of the bubble"
		callsIn(outer, func(tb testing.TB) { Start(tb) }).want(t, text)
		srv, ensemble := Start(t), StartEnsemble(t, 3)
		link := srv.NewLink(t)
		for name, call := range map[string]func(tb testing.TB){
			"StartEnsemble": func(tb testing.TB) { StartEnsemble(tb, 3) },
			"NewLink":       func(tb testing.TB) { srv.NewLink(tb) },
			"Connect":       func(tb testing.TB) { srv.Connect(tb) },
			"Link.Connect":  func(tb testing.TB) { link.Connect(tb) },
			"ConnectTo":     func(tb testing.TB) { ensemble.ConnectTo(tb, 1) },
		} {
			if t.Failed() {
				t.Fatalf("before %s, whose Manager would stay behind in the bubble", name)
			}
			callsIn(outer, call).want(t, text)
		}
	})
}

// A test whose cleanups run outside the bubble is told so, and the cleanups touch nothing in the bubble. Breaks if atEnd does not
// compare the bubbles.
func TestCleanupsOutsideTheBubble(t *testing.T) {
	fake := &lateTB{fakeTB: fakeTB{TB: t}}
	synctest.Test(t, func(t *testing.T) {
		fake.TB = t
		Start(fake).NewLink(fake)
	})
	for _, f := range slices.Backward(fake.cleanups) {
		f()
	}
	if len(fake.said) != 2 {
		t.Errorf("the test was told %q, want a message for the link and one for the server", fake.said)
	}
	fake.want(t, "pass the t of the bubble")
}

// lateTB keeps the cleanups of a test.
type lateTB struct {
	fakeTB
	cleanups []func()
}

func (l *lateTB) Cleanup(f func()) { l.cleanups = append(l.cleanups, f) }
