package watch

// testHookApply runs before each delivery is applied. The tests of this package
// pause in it, so that a connection gets ahead of its mirror.
var testHookApply = func() {}
