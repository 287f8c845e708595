package zksync_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A queue works with a small WithMaxRequest and uses more requests.
func TestQueueWithSmallRequests(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const n = 400
		connect := func() *session.Manager { return srv.Connect(t, session.WithMaxRequest(1024)) }
		offer(t, connect(), queuePath, 0, n)
		m := connect()
		q, other := zksync.NewQueue(m, queuePath), zksync.NewQueue(connect(), queuePath)
		ch := q.Chan()
		got := receive(t, ch, 50)
		// The answer to a claim is lost, and then the session.
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, At: zksynctest.BeforeReply, Do: zksynctest.Disconnect})
		got = append(got, receive(t, ch, 50)...)
		srv.ExpireSession(live(t, m).ID())
		got = append(got, receive(t, ch, 50)...)
		want(t, got, numbers(0, 150))
		// Messages of the lost session that were received and not removed yet would come to
		// the other consumer again, as Chan documents.
		eventually(t, "removal of the messages that were received", func() bool {
			left, _ := leftItems(srv, queuePath)
			return len(left) == n-len(got)
		})
		// From here on two consumers share the queue.
		others := other.Chan()
		synctest.Wait()
		for len(got) < n {
			select {
			case data := <-ch:
				got = append(got, string(data))
			case data := <-others:
				got = append(got, string(data))
			case <-time.After(patience):
				t.Fatalf("no message after %d of %d: %v, %v", len(got), n, q.Err(), other.Err())
			}
		}
		wantAll(t, got, n)
		if length, err := q.Len(t.Context()); err != nil {
			t.Error("Len:", length, err)
		}
		closeQueue(t, q)
		closeQueue(t, other)
		wantLeft(t, srv, 0, 0)
	})
}

// A queue works at the root and at a long path.
func TestQueueAtOddPaths(t *testing.T) {
	for _, path := range []string{"/", "/" + strings.Repeat("x", 200)} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t, session.WithMaxRequest(2048))
			q := zksync.NewQueue(m, path)
			var all [][]byte
			for i := range 100 {
				all = append(all, fmt.Append(nil, i))
			}
			if err := q.PutAll(t.Context(), all...); err != nil {
				t.Fatal(err)
			}
			takes(t, q, "0")
			want(t, receive(t, q.Chan(), 99), numbers(1, 100))
			closeQueue(t, q)
			if _, left := leftItems(srv, strings.TrimSuffix(path, "/")); len(left) > 0 {
				t.Errorf("claims are left: %v", left)
			}
		})
	}
}

// A Nack whose request is too large fails with ErrTooLarge, and the value gives the message back when the request
// has room.
func TestNackWithoutRoomGivesBackLater(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const n = 128
		for _, path := range []string{"/queues", queuePath} {
			must(t, srv.Create(path, nil))
		}
		for i := range n {
			must(t, srv.Create(fmt.Sprintf("%s/qn-%010d", queuePath, 1_000_000_000+i), fmt.Append(nil, i)))
		}
		q := zksync.NewQueue(srv.Connect(t, session.WithMaxRequest(1024)), queuePath)
		defer closeQueue(t, q)
		var all, kept []*zksync.Message
		for full := false; !full && len(all) < n; {
			select {
			case msg := <-q.Messages():
				all = append(all, msg)
			case <-time.After(time.Minute):
				full = true // the names of more messages do not fit into a request
			}
		}
		nacked, tooLarge := 0, 0
		for i, msg := range all {
			if i%2 == 0 {
				kept = append(kept, msg)
				continue
			}
			nacked++
			if err := msg.Nack(t.Context()); errors.Is(err, session.ErrTooLarge) {
				tooLarge++
			} else if err != nil {
				t.Error("Nack:", err)
			}
		}
		if tooLarge == 0 {
			t.Fatalf("%d messages were given back at once, want some that had no room", nacked)
		}
		for _, msg := range kept {
			ack(t, msg)
		}
		for range n - len(kept) {
			select {
			case msg := <-q.Messages():
				ack(t, msg)
			case <-time.After(time.Hour):
				t.Fatal("a message was not given back")
			}
		}
		wantLeft(t, srv, 0, 0)
	})
}
