package session_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Of Sets at the same time the last one counts, and its outcome is the outcome of all of them.
func TestSetsAtTheSameTimeHaveOneOutcome(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		e := keepEphemeral(t, m, "/a", "x")
		release := make(chan struct{})
		srv.Inject(zkserver.Fault{Op: zkserver.OpSetData, Path: "/a", At: zkserver.BeforeCommit, Do: zkserver.Delay(time.Second)})
		srv.Inject(zkserver.Fault{Op: zkserver.OpSetData, Path: "/a", At: zkserver.BeforeCommit, Do: zkserver.Error(-125)})
		srv.Inject(zkserver.Fault{Op: zkserver.OpSetData, Path: "/a", Nth: 2, At: zkserver.BeforeCommit, Do: zkserver.Hold(release)})
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- e.Set(t.Context(), []byte("first")) }()
		synctest.Wait()
		go func() { second <- e.Set(t.Context(), []byte("second")) }()
		time.Sleep(time.Minute)
		close(release)
		a, b := <-first, <-second
		if (a == nil) != (b == nil) {
			t.Errorf("two Sets ran at the same time: the first returned %v, and the last %v", a, b)
		}
	})
}

// A server refuses to create the znode with the data of a Set between sessions: the Set fails, and the znode is created
// with the data that were written last.
func TestEphemeralWhoseNewDataExceedAQuota(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		s := current(t, m)
		for _, path := range []string{"/dir", "/zookeeper/quota/dir"} {
			create(t, s, path, 0)
		}
		if _, err := s.Create(t.Context(), "/zookeeper/quota/dir/zookeeper_limits", []byte("count=-1,bytes=-1=;byteHardLimit=100;countHardLimit=-1"), 0); err != nil {
			t.Fatal(err)
		}
		e := keepEphemeral(t, m, "/dir/a", "small")
		big := []byte(strings.Repeat("x", 500))
		// With a znode there the refusal is the result of Set, and the former data stay.
		err := e.Set(t.Context(), big)
		if err == nil {
			t.Fatal("no quota")
		}
		// Now the Set comes while there is no session.
		srv.HangHandshake(true)
		srv.ExpireSession(s.ID())
		time.Sleep(time.Minute)
		result := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		go func() { result <- e.Set(ctx, big) }()
		synctest.Wait()
		srv.HangHandshake(false)
		time.Sleep(30 * time.Minute)
		data, ok := srv.Get("/dir/a")
		if string(data) != "small" {
			t.Errorf("the znode has %q", data)
		}
		if !ok {
			t.Error("the znode is gone: the data that was written last is not the wanted data again")
		}
		select {
		case err := <-result:
			if session.ClassOf(err) != session.ClassFinal {
				t.Error("Set:", err)
			}
		default:
			t.Error("Set waits, though the server refuses the data")
		}
	}, zksynctest.WithConfig(zkserver.Config{EnforceQuota: true}))
}

// Set refuses data that a create of the znode could not send, so data that Set has written is created again in the next
// session (Ephemeral.checkCreate).
func TestSetOfDataThatACreateCouldNotSend(t *testing.T) {
	for name, opts := range map[string][]session.EphemeralOption{
		"plain": nil, "with a sequence": {session.WithSequence()},
		"with an ACL": {session.WithEphemeralACL(zk.DigestACL(zk.PermRead, "joe", "x")[0], zk.WorldACL(zk.PermAll)[0])},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				const limit = 2048
				m := srv.Connect(t, session.WithMaxRequest(limit))
				e := keepEphemeral(t, m, "/e", "small", opts...)
				for size := limit; ; size-- {
					err := e.Set(t.Context(), make([]byte, size))
					if err == nil {
						break
					}
					mustBe(t, err, session.ErrTooLarge)
				}
				s := current(t, m)
				until(t, e, session.Present)
				if err := srv.ExpireSession(s.ID()); err != nil {
					t.Fatal(err)
				}
				<-s.Done()
				until(t, e, session.Absent)
				until(t, e, session.Present)
			})
		})
	}
}

// Close waits for the session timeout that the servers have granted, which may be longer than the one of WithTimeout.
func TestEphemeralCloseWaitsForTheGrantedTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		link := srv.NewLink(t)
		m := link.Connect(t, session.WithTimeout(100*time.Millisecond))
		s := current(t, m)
		e := keepEphemeral(t, m, "/a", "x")
		link.Delay(30 * time.Millisecond)
		time.Sleep(time.Second)
		began := time.Now()
		err := e.Close()
		took := time.Since(began)
		time.Sleep(time.Second)
		_, there := srv.Get("/a")
		if err != nil {
			t.Errorf("after %v, with a session timeout of %v and a server that answers in 60 ms: %v; a second later the znode is there: %v", took, s.Timeout(), err, there)
		}
	})
}

// Set states the internal error of the server because of which it waits, and not a removal that is over.
func TestSetBehindInternalErrorsStatesTheReason(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		e := keepEphemeral(t, srv.Connect(t), "/e", "x")
		srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/e", At: zkserver.BeforeReply, Do: zkserver.Disconnect})
		if err := srv.Delete("/e"); err != nil {
			t.Fatal(err)
		}
		srv.Inject(zkserver.Fault{Op: zkserver.OpExists, Path: "/e", Times: -1, Do: zkserver.Error(-1)})
		time.Sleep(10 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := e.Set(ctx, nil); err == nil || !strings.Contains(err.Error(), "system error") {
			t.Errorf("Set: %v, want the internal error", err)
		}
	})
}

// Ephemeral states the internal error of the server because of which it waits.
func TestEphemeralBehindInternalErrorsStatesTheReason(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		srv.Inject(zkserver.Fault{Op: zkserver.OpExists, Path: "/e", At: zkserver.BeforeCommit, Do: zkserver.Error(-1), Times: -1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := m.Ephemeral(ctx, "/e", nil)
		if session.WaitReason(err) == nil {
			t.Error("no reason")
		}
	})
}
