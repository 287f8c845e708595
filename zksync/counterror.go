package zksync

import "fmt"

// A CountError reports how many participants Enter or Leave counted before its wait
// ended. It is part of the error of such a call at a DoubleBarrier. Enter counts the
// participants that have arrived, the caller included. Leave counts the participants that
// it still found inside.
type CountError struct {
	There int   // number of participants that were counted
	Size  int   // number of participants of the barrier
	Err   error // the reason why the wait ended
}

// Error begins with the numbers.
func (e *CountError) Error() string {
	return fmt.Sprintf("%d of %d were there: %v", e.There, e.Size, e.Err)
}

// Unwrap returns the reason why the wait ended.
func (e *CountError) Unwrap() error { return e.Err }
