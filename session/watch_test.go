package session_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A Watch of each kind fires once, in a channel with a buffer of one. The channel is closed after the event.
func TestEveryKindOfWatchEvent(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		ctx := t.Context()
		dir := servers.Path(t)
		create(t, current(t, srv.Connect(t)), dir, 0)
		s := current(t, srv.Connect(t, session.WithTimeout(4*time.Second)))
		node := dir + "/node"
		expect := func(ch <-chan zk.Event, err error, want zk.EventType, change func() error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			if err := change(); err != nil {
				t.Fatal(err)
			}
			wantPath := node
			if want == zk.EventNodeChildrenChanged {
				wantPath = dir
			}
			select {
			case ev := <-ch:
				if ev.Type != want || ev.Path != wantPath || ev.Err != nil {
					t.Errorf("event %+v, want %v of %s", ev, want, wantPath)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("no event, want %v", want)
			}
			if _, open := <-ch; open {
				t.Error("the channel stays open behind its event")
			}
		}
		set := func() error { _, err := s.Set(ctx, node, nil, -1); return err }
		remove := func() error { return s.Delete(ctx, node, -1) }
		make := func() error { _, err := s.Create(ctx, node, nil, 0); return err }

		ok, _, ch, err := s.ExistsW(ctx, node)
		if ok {
			t.Error("exists before it was created")
		}
		expect(ch, err, zk.EventNodeCreated, make)
		_, _, ch, err = s.ExistsW(ctx, node)
		expect(ch, err, zk.EventNodeDataChanged, set)
		_, _, ch, err = s.GetW(ctx, node)
		expect(ch, err, zk.EventNodeDataChanged, set)
		_, _, ch, err = s.ChildrenW(ctx, dir)
		_, _, gone, _ := s.GetW(ctx, node)
		_, _, goneToo, _ := s.ChildrenW(ctx, node)
		expect(ch, err, zk.EventNodeChildrenChanged, remove)
		expect(gone, nil, zk.EventNodeDeleted, func() error { return nil })
		expect(goneToo, nil, zk.EventNodeDeleted, func() error { return nil })
		if _, _, _, err := s.GetW(ctx, node); !errors.Is(err, zk.ErrNoNode) {
			t.Errorf("GetW of nothing: %v, want ErrNoNode", err)
		}
	})
}

// The event of a change arrives before the answers to later requests.
func TestEventsComeBeforeLaterAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		create(t, s, "/n", 0)
		for range 100 {
			_, _, w, err := s.WatchData(t.Context(), "/n")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Set(t.Context(), "/n", nil, -1); err != nil {
				t.Fatal(err)
			}
			select {
			case ev := <-w.Events():
				if ev.Type != zk.EventNodeDataChanged {
					t.Errorf("event %+v", ev)
				}
			default:
				t.Fatal("the change was answered before it was told")
			}
			if w.FiredOn() != w.Connection() || w.Connection() != s.Connection() || w.Connection() == 0 {
				t.Errorf("armed on %d, fired on %d, now on %d: want one connection", w.Connection(), w.FiredOn(), s.Connection())
			}
		}
	})
}

// A watch that several waits share stays until the last of them stops.
func TestWatchesThatAreSharedAndStopped(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		create(t, s, "/n", 0)
		const n = 1000
		var all []*session.Watch
		for range n {
			_, _, w, err := s.WatchExists(t.Context(), "/n")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, w)
		}
		if got := srv.WatchesOf(s.ID()); got != 1 {
			t.Errorf("%d watches on the server for one znode, want 1", got)
		}
		for i, w := range all {
			if i%3 == 0 {
				w.Stop()
				w.Stop()
			}
		}
		srv.Set("/n", nil)
		synctest.Wait()
		for i, w := range all {
			select {
			case ev := <-w.Events():
				if i%3 == 0 || ev.Type != zk.EventNodeDataChanged {
					t.Fatalf("watch %d: %+v", i, ev)
				}
			default:
				if i%3 != 0 {
					t.Fatalf("watch %d has not fired", i)
				}
			}
			w.Stop()
		}
	})
}

// A wait that was stopped disturbs no other wait on the same znode.
func TestAnAbandonedWatchDoesNotDisturbOthers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		create(t, s, "/n", 0)
		release := make(chan struct{})
		srv.Inject(zkserver.Fault{Op: zkserver.OpGetData, Path: "/n", At: zkserver.BeforeReply, Do: zkserver.Hold(release)})
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() { _, _, _, err := s.WatchData(ctx, "/n"); gone <- err }()
		synctest.Wait()
		cancel()
		mustBe(t, <-gone, context.Canceled)
		close(release)
		_, _, w, err := s.WatchData(t.Context(), "/n")
		if err != nil {
			t.Fatal(err)
		}
		// Stop so many watches that the abandoned one is removed.
		for i := range 200 {
			_, _, other, err := s.WatchExists(t.Context(), fmt.Sprint("/other", i))
			if err != nil {
				t.Fatal(err)
			}
			other.Stop()
		}
		synctest.Wait()
		srv.Set("/n", []byte("new"))
		synctest.Wait()
		select {
		case <-w.Events():
		default:
			t.Error("the watch was taken away with the abandoned one")
		}
	})
}

// A Watch delivers EventNotWatching with the reason when the session, or the ctx of GetW, ends first.
func TestWatchesEndWithContextAndSession(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		create(t, s, "/n", 0)
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		_, _, byCtx, err := s.GetW(ctx, "/n")
		if err != nil {
			t.Fatal(err)
		}
		cancel(cause)
		ev := <-byCtx
		if ev.Type != zk.EventNotWatching || !errors.Is(ev.Err, context.Canceled) || !errors.Is(ev.Err, cause) || ev.Path != "/n" {
			t.Errorf("event %+v, want EventNotWatching with the cause", ev)
		}
		if _, open := <-byCtx; open {
			t.Error("the channel stays open")
		}
		_, _, byLoss, err := s.ChildrenW(t.Context(), "/n")
		if err != nil {
			t.Fatal(err)
		}
		srv.ExpireSession(s.ID())
		ev = <-byLoss
		if ev.Type != zk.EventNotWatching || !errors.Is(ev.Err, session.ErrLost) || ev.State != zk.StateExpired {
			t.Errorf("event %+v, want EventNotWatching with ErrLost", ev)
		}
		s = current(t, m)
		_, _, w, err := s.WatchData(t.Context(), "/n")
		if err != nil {
			t.Fatal(err)
		}
		m.Close()
		if ev := <-w.Events(); !errors.Is(ev.Err, session.ErrClosed) || w.FiredOn() != 0 {
			t.Errorf("event %+v on %d, want EventNotWatching with ErrClosed", ev, w.FiredOn())
		}
	})
}

// counted counts the functions that are registered with a context and not removed.
type counted struct {
	context.Context
	done       chan struct{}
	registered int
}

func (c *counted) Done() <-chan struct{} { return c.done }

// context.AfterFunc calls AfterFunc if a context has that method.
func (c *counted) AfterFunc(func()) func() bool {
	c.registered++
	return func() bool { c.registered--; return true }
}

// A Watch that has ended leaves nothing in its context.
func TestNothingOfAWatchIsLeftInItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		create(t, s, "/n", 0)
		ctx := &counted{Context: t.Context(), done: make(chan struct{})}
		for range 10 {
			_, _, ch, err := s.GetW(ctx, "/n")
			if err != nil {
				t.Fatal(err)
			}
			if ctx.registered != 1 {
				t.Fatalf("%d registered, want 1", ctx.registered)
			}
			srv.Set("/n", nil)
			<-ch
			synctest.Wait()
			if ctx.registered != 0 {
				t.Fatal("something is left in the context behind the event")
			}
		}
		_, _, ch, err := s.GetW(ctx, "/n")
		if err != nil {
			t.Fatal(err)
		}
		m.Close()
		<-ch
		if ctx.registered != 0 {
			t.Error("something is left in the context behind the session")
		}
	})
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	return ms.HeapAlloc
}

// Stopped waits on one znode leave neither memory nor watches.
func TestManyWaitsOnOneZnodeLeaveNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		create(t, s, "/n", 0)
		wait := func(n int) {
			for range n {
				_, _, w, err := s.WatchData(t.Context(), "/n")
				if err != nil {
					t.Fatal(err)
				}
				w.Stop()
			}
		}
		n := bounds.Size(30_000, 90_000)
		wait(10_000)
		before := heap()
		wait(n)
		if after := heap(); after > before+512<<10 {
			t.Errorf("the heap grew by %d bytes over %d waits", after-before, n)
		}
		if n := srv.WatchesOf(s.ID()); n != 1 {
			t.Errorf("%d watches on the server, want 1", n)
		}
		if n := count(srv.Ops(), zkserver.OpRemoveWatches); n != 0 {
			t.Errorf("%d requests to remove the one watch, want none", n)
		}
	}, zksynctest.WithConfig(zkserver.Config{OpsKept: 1000}))
}

// The watches of stopped waits are removed on the server, by each means that a server offers.
func TestGivenUpWatchesAreRemoved(t *testing.T) {
	for _, how := range []string{"knows op 18", "answers Unimplemented", "hangs up without a word"} {
		t.Run(how, func(t *testing.T) {
			var cfg zkserver.Config
			if how == "answers Unimplemented" {
				cfg.Without = []zkserver.OpCode{zkserver.OpRemoveWatches}
			}
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				s := current(t, connect(t, srv, three))
				if how == "hangs up without a word" {
					srv.Inject(zkserver.Fault{Op: zkserver.OpRemoveWatches, Do: zkserver.Disconnect, Times: -1})
				}
				create(t, s, "/kept", 0)
				_, _, kept, err := s.WatchData(t.Context(), "/kept")
				if err != nil {
					t.Fatal(err)
				}
				const n = 5000
				first := s.Connection()
				for i := range n {
					path := fmt.Sprint("/x", i)
					_, _, w, err := s.WatchExists(t.Context(), path)
					if err != nil {
						t.Fatal(err)
					}
					w.Stop()
				}
				synctest.Wait()
				const idle = 64
				lost := s.Connection() - first
				switch how {
				case "knows op 18":
					if got := srv.WatchesOf(s.ID()); got > idle+1 {
						t.Errorf("%d watches on the server, want at most %d", got, idle+1)
					}
					if lost != 0 {
						t.Errorf("%d connections broke", lost)
					}
				default:
					if lost > 2 {
						t.Errorf("%d connections broke over %d watches, want no more than it takes to learn", lost, n)
					}
				}
				srv.Set("/kept", nil)
				if ev := <-kept.Events(); ev.Type != zk.EventNodeDataChanged {
					t.Errorf("event %+v of the watch that was kept", ev)
				}
				// A stopped watch is not armed again on the next connection.
				srv.Disconnect(s.ID())
				if err := s.Sync(t.Context(), "/"); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if got := srv.WatchesOf(s.ID()); got != 0 {
					t.Errorf("%d watches behind a reconnect, want none", got)
				}
			}, zksynctest.WithConfig(cfg))
		})
	}
}
