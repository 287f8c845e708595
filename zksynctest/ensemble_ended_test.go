package zksynctest

import (
	"slices"
	"testing"
	"testing/synctest"
)

// A goroutine that waits for a leader when its test ends fails no test, and the calls after the test do nothing, as with an Ensemble.
// Breaks if EmbeddedEnsemble.check, Depose or Addr reports errors after the end of the test: a message to a test that has ended ends
// the test binary.
func TestAnEmbeddedEnsembleAfterTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &lateTB{fakeTB: fakeTB{TB: t}}
		e := StartEnsemble(fake, 3)
		e.Kill(1)
		e.Kill(2)
		waited := make(chan int)
		go func() { waited <- e.WaitLeader(3) }()
		synctest.Wait()
		for _, f := range slices.Backward(fake.cleanups) {
			f()
		}
		if n := <-waited; n != 0 || len(fake.said) > 0 {
			t.Errorf("while WaitLeader waited, the test that ended was told %q, and %d leads", fake.said, n)
		}
		for name, call := range map[string]func() any{
			"WaitLeader": func() any { return e.WaitLeader() },
			"WaitReady":  func() any { e.WaitReady(); return nil },
			"Start":      func() any { e.Start(1); return nil },
			"Restart":    func() any { e.Restart(3); return nil },
			"Depose":     func() any { return e.Depose() },
			"Addr":       func() any { return e.Addr(1) },
			"Kill":       func() any { e.Kill(1); return nil },
			"Pause":      func() any { e.Pause(1); return nil },
			"HealAll":    func() any { e.HealAll(); return nil },
		} {
			fake.said = nil
			done := make(chan any, 1) // a Fatalf ends the goroutine
			go func() {
				defer close(done)
				done <- call()
			}()
			if got := <-done; got != nil && got != 0 && got != "" || len(fake.said) > 0 {
				t.Errorf("%s after the test: returned %v, and the test was told %q", name, got, fake.said)
			}
		}
	})
}
