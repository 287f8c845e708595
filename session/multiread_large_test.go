package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// After the second answer that was too large, MultiRead sends the reads one by one: each of them may break the
// connection, and with it the requests of other callers.
func TestMultiReadOfLargeAnswersIsOneByOne(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three, session.WithMaxAnswer(1024))
		s := current(t, m)
		var reads []session.Read
		for i := range 1000 {
			path := fmt.Sprintf("/z%d", i)
			srv.Create(path, []byte(strings.Repeat("x", 500)))
			reads = append(reads, session.ReadData(path))
		}
		release := make(chan struct{})
		srv.Inject(zkserver.Fault{Op: zkserver.OpGetData, At: zkserver.BeforeCommit, Do: zkserver.Hold(release)})
		done := make(chan error, 1)
		go func() { _, err := s.MultiRead(t.Context(), reads...); done <- err }()
		time.Sleep(2 * time.Second)
		n := m.Stats().InFlight
		close(release)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if n > 2 {
			t.Errorf("%d reads in flight at once", n)
		}
	})
}

// A MultiRead of several requests breaks two connections in all by answers that are too large.
func TestMultiReadOfLargeAnswersInSeveralRequests(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three, session.WithMaxRequest(1024), session.WithMaxAnswer(1024))
		s := current(t, m)
		var reads []session.Read
		for i := range 400 {
			path := fmt.Sprintf("/znode-%04d-%s", i, strings.Repeat("n", 60))
			srv.Create(path, []byte(strings.Repeat("x", 300)))
			reads = append(reads, session.ReadData(path))
		}
		before := m.Stats().Connections
		got, err := s.MultiRead(t.Context(), reads...)
		if err != nil || len(got) != 400 {
			t.Fatal(len(got), err)
		}
		for _, r := range got {
			if r.Err != nil || len(r.Data) != 300 {
				t.Fatal(r)
			}
		}
		if n := m.Stats().Connections - before; n > 2 {
			t.Errorf("one MultiRead broke %d connections by answers that were too large, want 2: after the second it sends the reads one by one", n)
		}
	})
}

// An answer to multiRead with an error that has the code zero is no result.
func TestMultiReadOfErrorsWithoutACode(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		h := &hostileServer{answer: func(p *hostilePeer, xid, op int32, body []byte) bool {
			if op != 22 {
				return false
			}
			p.reply(xid, 0, ints(-1), []byte{0}, ints(0), ints(0), ints(-1), []byte{1}, ints(-1))
			return true
		}}
		s := current(t, connectTo(t, h))
		got, err := s.MultiRead(t.Context(), session.ReadData("/a"))
		if err == nil && got[0].Err == nil && got[0].Stat == nil {
			t.Errorf("no error, and neither data nor Stat: %+v", got)
		}
	})
}

// A MultiRead whose reads a server refuses for a moment, again and again, says so at the end of its ctx.
func TestThrottledReadOfAMultiRead(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		h := &hostileServer{answer: func(p *hostilePeer, xid, op int32, body []byte) bool {
			if op != 22 {
				return false
			}
			p.reply(xid, 0, ints(-1), []byte{0}, ints(-127), ints(-127), ints(-1), []byte{1}, ints(-1))
			return true
		}}
		s := current(t, connectTo(t, h))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := s.MultiRead(ctx, session.ReadData("/a"))
		mustBe(t, err, context.DeadlineExceeded)
		if session.WaitReason(err) == nil {
			t.Errorf("%v, want the refusal in it", err)
		}
	})
}
