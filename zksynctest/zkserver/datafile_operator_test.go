package zkserver_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// The changes of an operator and of the clock are in the DataFile when the call returns, although no client was told.
func TestACrashLosesNothingOfTheOperator(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		cfg := zkserver.Config{ExtendedTypes: true}
		s, file := onFile(t, cfg)
		gone, idle := session(t, s, 40*time.Second), session(t, s, 10*time.Second)
		gone.create("/gone", 1)
		idle.create("/idle", 1)
		idle.want(0, zkserver.OpCreateTTL, createRec("/ttl", "", 5).i64(1000))
		look := func(what string, zxids int64, err error) {
			t.Helper()
			synctest.Wait()
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			next := crashed(t, file, cfg)
			same(t, what, next, s)
			if got := next.Zxid(); got != zxids {
				t.Fatalf("%s: zxid %d, want %d", what, got, zxids)
			}
		}
		look("clients", 5, nil)
		look("Create", 6, s.Create("/a", nil))
		look("Set", 7, s.Set("/a", []byte("x")))
		look("SetNextSequence", 7, s.SetNextSequence("/a", 1000))
		look("ExpireSession", 8, s.ExpireSession(gone.id))
		time.Sleep(2 * time.Second)
		if n := s.ReapNow(); n != 1 {
			t.Fatalf("%d were reaped", n)
		}
		look("ReapNow", 9, nil)
		look("Delete", 10, s.Delete("/a"))
		s.DelayEphemeralRemoval(5 * time.Second)
		idle.closed() // the session expires
		if _, ok := s.Get("/idle"); !ok || s.Zxid() != 11 {
			t.Fatalf("%v, zxid %d", ok, s.Zxid())
		}
		time.Sleep(6 * time.Second)
		look("a leftover", 12, nil)
	})
}

// An expiry is in the DataFile at once, whether or not a client is told.
func TestTheClockOnFile(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s, file := onFile(t, zkserver.Config{})
		r := session(t, s, 10*time.Second)
		r.create("/e", 1)
		s.Partition(r.id)
		time.Sleep(time.Minute)
		synctest.Wait()
		next := crashed(t, file, zkserver.Config{})
		if _, ok := next.Get("/e"); ok || len(next.Sessions()) != 0 || next.Zxid() != 3 {
			t.Errorf("%v, %v, zxid %d", ok, next.Sessions(), next.Zxid())
		}
	})
}

// Operator calls on a closed server fail with ErrNotServing.
func TestTheOperatorOfAClosedServer(t *testing.T) {
	s, _ := onFile(t, zkserver.Config{})
	r := session(t, s, 10*time.Second)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"ExpireSession":   s.ExpireSession(r.id),
		"SetNextSequence": s.SetNextSequence("/", 7),
		"Create":          s.Create("/a", nil),
	} {
		if !errors.Is(err, zkserver.ErrNotServing) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := s.ReapNow(); n != 0 {
		t.Errorf("%d were reaped", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
