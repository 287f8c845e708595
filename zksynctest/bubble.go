package zksynctest

import (
	"bytes"
	"errors"
	"reflect"
	"runtime"
	"testing"
)

// These errors replace the faults by which the runtime ends the whole test binary.
var (
	errOtherBubble     = errors.New("zksynctest: Start was called outside this synctest bubble; call Start inside the bubble that uses the server")
	errLinkOtherBubble = errors.New("zksynctest: NewLink was called outside this synctest bubble; call NewLink inside the bubble that uses the link")
	errOuterTest       = errors.New("zksynctest: the test that was passed inside a synctest bubble is the test outside it; pass the t of the bubble, " +
		"which synctest.Test passes to its function")
)

// bubble returns the name of the bubble in which it runs, and nothing outside. It parses the header of its own stack trace,
// because testing/synctest has no function for it.
func bubble() string {
	buf := make([]byte, 128)
	buf = buf[:runtime.Stack(buf, false)]
	header, _, _ := bytes.Cut(buf, []byte("\n"))
	_, name, _ := bytes.Cut(header, []byte("synctest bubble "))
	return string(name)
}

// checkTest fails the test inside a bubble if tb is the test outside. tb would run its cleanups outside the bubble.
func checkTest(tb testing.TB) {
	tb.Helper()
	if bubble() != "" && isOuter(reflect.ValueOf(tb)) {
		tb.Fatal(errOuterTest)
	}
}

// isOuter reports whether a test, or the test that it embeds, is the test of no bubble. Package testing has no function for
// this question, so that isOuter reads a field of testing.T. Without the field isOuter returns false, and atEnd finds the mistake.
func isOuter(v reflect.Value) bool {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return false
	}
	for i := range v.NumField() {
		switch f := v.Type().Field(i); {
		case f.Name == "isSynctest" && f.Type.Kind() == reflect.Bool:
			return !v.Field(i).Bool()
		case f.Anonymous && isOuter(v.Field(i)):
			return true
		}
	}
	return false
}

// atEnd calls f at the end of the test, unless that is outside the bubble of the caller, where f would end the test binary.
func atEnd(tb testing.TB, f func()) {
	tb.Helper()
	began := bubble()
	tb.Cleanup(func() {
		if bubble() != began {
			tb.Errorf("%v", errOuterTest)
			return
		}
		f()
	})
}
