package zksynctest

import (
	"testing"

	"github.com/go-zksync/toolkit/session"
)

// Connect returns a Manager with a session on the servers, over their links to clients. It is
// closed when the test ends. Without a session within a minute the test fails at once, so call
// Connect from the goroutine of the test.
func (e *Ensemble) Connect(tb testing.TB, opts ...session.Option) *session.Manager {
	tb.Helper()
	return connect(tb, e.Servers(), opts)
}

// ConnectTo is Connect for a client that knows only server i.
func (e *Ensemble) ConnectTo(tb testing.TB, i int, opts ...session.Option) *session.Manager {
	tb.Helper()
	return connect(tb, e.Addr(i), opts)
}
