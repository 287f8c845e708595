package zksynctest_test

import (
	"testing"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// face has the common methods of real and embedded ensembles.
type face interface {
	Kill(i int)
	Start(i int)
	Restart(i int)
	Pause(i int)
	Resume(i int)
	Cut(i, j int)
	Heal(i, j int)
	HealAll()
	Reset(i, j int)
	ResetEnd(i, j int)
	Depose() int
	Leader() int
	Followers() []int
	WaitLeader(not ...int) int
	WaitReady()
	Servers() string
	Addr(i int) string
	Connect(tb testing.TB, opts ...session.Option) *session.Manager
	ConnectTo(tb testing.TB, i int, opts ...session.Option) *session.Manager
}

var (
	_ face = (*zksynctest.Ensemble)(nil)
	_ face = (*zksynctest.EmbeddedEnsemble)(nil)
)
