package watch

// SetApplyHook has f run before each delivery is applied, in the goroutine that
// applies it, until restore is called. Every stream and Cache must start after
// SetApplyHook and end before restore.
func SetApplyHook(f func()) (restore func()) {
	before := testHookApply
	testHookApply = f
	return func() { testHookApply = before }
}
