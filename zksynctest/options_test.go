package zksynctest

import (
	"testing"
	"time"
)

// An option that is nil fails the test with a message that names the option.
func TestNilOptions(t *testing.T) {
	const text = "option 2 is nil"
	callsIn(t, func(tb testing.TB) { Start(tb, WithTick(time.Second), nil) }).want(t, text)
	callsIn(t, func(tb testing.TB) { StartEnsemble(tb, 3, WithTick(time.Second), nil) }).want(t, text)
	callReal(t, 1, RealTickTime(time.Second), nil).want(t, text)
}
