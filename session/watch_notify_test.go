package session_test

import (
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksynctest"
)

// Notify calls its function once, also for an event that has already happened, and not after Stop.
func TestNotify(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		s := current(t, m)
		create(t, s, "/a", 0)
		events := make(chan zk.Event, 10)
		told := func(want zk.EventType) {
			t.Helper()
			synctest.Wait()
			select {
			case ev := <-events:
				if ev.Type != want {
					t.Errorf("told of %v, want %v", ev.Type, want)
				}
			default:
				t.Errorf("not told, want %v", want)
			}
		}
		note := func(ev zk.Event) { events <- ev }

		_, _, w, err := s.WatchData(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		w.Notify(note)
		if _, err := s.Set(t.Context(), "/a", nil, -1); err != nil {
			t.Fatal(err)
		}
		// The event arrives before the answer, so no wait is needed.
		if len(events) != 1 {
			t.Error("not told before the answer to what caused it")
		}
		told(zk.EventNodeDataChanged)

		// An event that has arrived before is delivered, too.
		_, _, w, err = s.WatchChildren(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		create(t, s, "/a/b", 0)
		w.Notify(note)
		told(zk.EventNodeChildrenChanged)

		// Nothing is delivered after Stop.
		for _, before := range []bool{true, false} {
			_, _, w, err = s.WatchData(t.Context(), "/a")
			if err != nil {
				t.Fatal(err)
			}
			if before {
				w.Stop()
				w.Notify(note)
			} else {
				w.Notify(note)
				w.Stop()
			}
		}
		if _, err := s.Set(t.Context(), "/a", nil, -1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(events) > 0 {
			t.Errorf("told of %v after Stop", <-events)
		}

		// The end of the session is an event, before and after.
		_, _, w, err = s.WatchData(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		_, _, late, err := s.WatchData(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		w.Notify(note)
		m.Close()
		told(zk.EventNotWatching)
		late.Notify(note)
		told(zk.EventNotWatching)
	})
}
