package zksync_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// The error of an RLock that its ctx ends says what the reader waited for: servers that fail, and not a writer that has
// left long ago, or the release of lost holds, whose wait has the operation rlock.
func TestRLockSaysItsReason(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t, session.WithTimeout(time.Minute))
		rw := zksync.NewRWMutex(m, path)
		writer := zksync.NewRWMutex(srv.Connect(t), path, zksync.WithID("long gone"))
		must(t, writer.Lock(t.Context()))
		if err := rw.RLock(within(t, 2*time.Second)); !strings.Contains(err.Error(), "held by long gone") {
			t.Errorf("behind a writer: %v", err)
		}
		must(t, writer.Unlock())
		srv.Stop()
		if err := rw.RLock(within(t, 20*time.Second)); !strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), "long gone") {
			t.Errorf("in an outage: %v", err)
		}
		must(t, srv.Start())
		must(t, rw.RLock(within(t, time.Minute)))
		must(t, srv.ExpireSession(live(t, m).ID()))
		time.Sleep(time.Minute)
		done := background(within(t, 20*time.Second), rw.RLock)
		synctest.Wait()
		if waits := m.Stats().Waits; len(waits) != 1 || waits[0].Op != "rlock" {
			t.Errorf("the waits are %+v, want an rlock", waits)
		}
		if err := <-done; !strings.Contains(err.Error(), "that were lost to be released") {
			t.Errorf("behind a lost hold: %v", err)
		}
	})
}

// A Lock that its ctx ends does not match ErrLost, although a session was lost while it waited.
func TestCancelledLockLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		lock(t, zksync.NewMutex(srv.Connect(t), path))
		done := background(within(t, time.Minute), zksync.NewMutex(m, path).Lock)
		synctest.Wait()
		srv.Partition(live(t, m).ID())
		srv.HangHandshake(true)
		if err := <-done; errors.Is(err, zksync.ErrLost) || session.ClassOf(err) != session.ClassCancelled {
			t.Errorf("Lock: %v, want the end of ctx alone", err)
		}
		srv.HangHandshake(false)
	})
}
