package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Stopped reads of an Inbox deliver nothing and leave no watch, at any moment of the stop.
func TestInboxReadsThatAreStopped(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		create(t, s, "/n", 0)
		in := inbox(t, s)
		in.Data("/n", "queued").Stop()
		nothingArrives(t, in)

		armed := in.Data("/n", "armed")
		same(t, receive(t, in, 1), "answer armed")
		armed.Stop()
		armed.Stop()

		release := make(chan struct{})
		srv.Inject(zkserver.Fault{Op: zkserver.OpGetChildren2, At: zkserver.BeforeReply, Do: zkserver.Hold(release)})
		sent := in.Children("/n", "sent")
		go func() {
			synctest.Wait()
			sent.Stop()
			close(release)
		}()
		nothingArrives(t, in)

		srv.Inject(zkserver.Fault{Op: zkserver.OpGetData, Do: zkserver.Error(-127), Times: 12})
		again := in.Data("/n", "again")
		time.AfterFunc(2*time.Second, again.Stop)
		nothingArrives(t, in)

		create(t, s, "/n/a", 0)
		if err := srv.Set("/n", nil); err != nil {
			t.Fatal(err)
		}
		nothingArrives(t, in)
		if n := srv.WatchesOf(s.ID()); n != 0 {
			t.Errorf("%d watches on the server, and both changes have come", n)
		}
	})
}

// Reads of an Inbox that are stopped in flight free their room for others, and their watches are removed.
func TestInboxReadsThatAreStoppedInFlight(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		in := inbox(t, s)
		release := make(chan struct{})
		srv.Inject(zkserver.Fault{Op: zkserver.OpExists, Path: "/x0", Do: zkserver.Hold(release)})
		var reads []*session.InboxRead
		for i := range 300 {
			reads = append(reads, in.Exists(fmt.Sprint("/x", i), i))
		}
		go func() {
			synctest.Wait()
			for _, r := range reads[:290] {
				r.Stop()
			}
			close(release)
		}()
		receive(t, in, 10)
		synctest.Wait()
		if n := srv.WatchesOf(s.ID()); n > 64+10 {
			t.Errorf("%d watches are left, want 64 at most and those of ten reads", n)
		}
	})
}

// Reads of an Inbox that are stopped while they wait to be repeated free their room for others.
func TestInboxReadsThatAreStoppedBeforeARetry(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		in := inbox(t, current(t, connect(t, srv, three)))
		srv.Inject(zkserver.Fault{Op: zkserver.OpExists, Path: "/x*", Do: zkserver.Error(-127), Times: -1})
		var reads []*session.InboxRead
		for i := range 300 {
			reads = append(reads, in.Exists(fmt.Sprint("/x", i), i))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if batch, err := in.Receive(ctx); len(batch) != 1 { // the connection
			t.Fatalf("%d deliveries, %v", len(batch), err)
		}
		if batch, err := in.Receive(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%d deliveries, %v", len(batch), err)
		}
		for _, r := range reads {
			r.Stop()
		}
		in.Exists("/", "another")
		same(t, receive(t, in, 1), "answer another")
	})
}

// Regardless of the number of Inboxes that are closed while their reads are in flight, at most 1,024 of these reads
// are unanswered beside one Inbox's window.
func TestInboxesThatAreClosedDoNotPileUp(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		create(t, s, "/n", 0)
		release := make(chan struct{})
		srv.Inject(zkserver.Fault{Op: zkserver.OpGetData, Do: zkserver.Hold(release)})
		sent := 0
		for range 100 {
			in := s.NewInbox()
			for range 400 {
				in.Data("/n", nil)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			for {
				if _, err := in.Receive(ctx); err != nil {
					break
				}
			}
			cancel()
			in.Close()
		}
		close(release)
		synctest.Wait()
		sent = count(srv.Ops(), zkserver.OpGetData)
		if sent > 1024+256 {
			t.Errorf("%d requests were sent for callers that had gone", sent)
		}
		if sent < 256 {
			t.Errorf("%d requests were sent", sent)
		}
		// The session works as before.
		in := inbox(t, s)
		in.Data("/n", "it")
		same(t, receive(t, in, 1), "answer it")
	}, zksynctest.WithConfig(zkserver.Config{OpsKept: 100_000}))
}

// Close of an Inbox removes its watches, and drops the events that were not received.
func TestInboxClose(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		in := s.NewInbox()
		for i := range 1000 {
			in.Exists(fmt.Sprint("/x", i), i)
		}
		receive(t, in, 1000)
		in.Post("dropped")
		in.Close()
		synctest.Wait()
		if n := srv.WatchesOf(s.ID()); n > 64 {
			t.Errorf("%d watches are left, want 64 at most", n)
		}
		in.Post("late")
		in.Data("/", "late")
		nothingArrives(t, in)
	})
}

// The end of an Inbox with many watches leaves the connection to other requests: the watches are removed a few at a time,
// and all but a few are removed in the end.
func TestTheWatchesOfAClosedInboxAreRemovedAFewAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		in := s.NewInbox()
		const n = 5000
		for i := range n {
			in.Exists(fmt.Sprint("/n", i), i)
		}
		receive(t, in, n)
		release := make(chan struct{})
		srv.Inject(zkserver.Fault{Op: zkserver.OpRemoveWatches, At: zkserver.BeforeReply, Do: zkserver.Hold(release)})
		in.Close()
		synctest.Wait()
		if got := m.Stats().InFlight; got > 100 {
			t.Errorf("%d requests are in flight, want a hundred at most", got)
		}
		close(release)
		synctest.Wait()
		if got := srv.WatchesOf(s.ID()); got > 64 {
			t.Errorf("%d watches on the server, want at most 64", got)
		}
	})
}

// Reads of an Inbox that are stopped while there is no connection do not pile up, and the other reads stay
// (Inbox.dropStopped).
func TestStoppedReadsDoNotPileUp(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		in := inbox(t, s)
		srv.Stop()
		synctest.Wait()
		in.Exists("/a", "a")
		for range 10_000 {
			in.SyncQuorum("/", "stopped").Stop()
		}
		in.Exists("/b", "b")
		if n := session.InboxQueued(in); n > 1000 {
			t.Errorf("%d reads are queued after 10000 were stopped", n)
		}
		srv.Start()
		for i, got := range receive(t, in, 2) {
			if want := string("ab"[i]); !strings.Contains(got, want) {
				t.Errorf("delivery %d is %q, want the read of %s", i, got, want)
			}
		}
	})
}
