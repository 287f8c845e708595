package watch

// SetApplyHook has f run before each delivery is applied, in whatever goroutine
// applies it, until restore. No stream and no Cache may live meanwhile but those
// that begin and end in between.
func SetApplyHook(f func()) (restore func()) {
	before := testHookApply
	testHookApply = f
	return func() { testHookApply = before }
}
