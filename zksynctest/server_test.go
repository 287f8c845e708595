package zksynctest_test

import (
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// In a bubble, a session of 30 s that is cut off is lost without waiting in real time.
func TestBubbleMakesTimeCheap(t *testing.T) {
	start := time.Now()
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		mu := zksync.NewMutex(m, "/locks/a")
		held, err := mu.LockContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		srv.Partition(s.ID())
		<-held.Done()
		t.Log(time.Since(began))
		time.Sleep(time.Hour)
		if err := mu.Unlock(); err == nil {
			t.Error("Unlock after a loss returned nil")
		}
	})
	t.Log(time.Since(start))
}

// Connect works in a function of Cleanup, where the context of the test has ended.
func TestConnectInACleanup(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		link := srv.NewLink(t)
		t.Cleanup(func() {
			for _, m := range []*session.Manager{srv.Connect(t), link.Connect(t)} {
				if m.State() != session.Connected {
					t.Errorf("the Manager is %v", m.State())
				}
			}
		})
	})
}
