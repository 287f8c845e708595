package zksync

import "fmt"

// A CountError is wrapped in the errors of Enter and Leave that end a wait at a
// DoubleBarrier. It says how many participants were there, as last seen: of those
// that are awaited by Enter, the caller included, or of those that Leave still
// found inside.
type CountError struct {
	There int   // how many were there
	Size  int   // how many the barrier is for
	Err   error // what ended the wait
}

// Error begins with the numbers.
func (e *CountError) Error() string {
	return fmt.Sprintf("%d of %d were there: %v", e.There, e.Size, e.Err)
}

// Unwrap returns what ended the wait.
func (e *CountError) Unwrap() error { return e.Err }
