package session_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Reads of an Inbox that a server refuses again and again are one Wait, which is reported with the refusal, until they
// are answered or stopped.
func TestRefusedReadsOfAnInboxAreReported(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, in *session.Inbox, reads []*session.InboxRead, fault *zkserver.Injection){
		"answered": func(t *testing.T, in *session.Inbox, _ []*session.InboxRead, fault *zkserver.Injection) {
			fault.Remove()
			receive(t, in, 2)
		},
		"stopped": func(_ *testing.T, _ *session.Inbox, reads []*session.InboxRead, _ *zkserver.Injection) {
			for _, r := range reads {
				r.Stop()
			}
		},
		"closed": func(_ *testing.T, in *session.Inbox, _ []*session.InboxRead, _ *zkserver.Injection) { in.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				opt, logs := observed()
				m := connect(t, srv, three, opt)
				s := current(t, m)
				create(t, s, "/a", 0)
				create(t, s, "/b", 0)
				in := inbox(t, s)
				if err := in.Refusal(); err != nil {
					t.Error("Refusal before the first read:", err)
				}
				fault := srv.Inject(zksynctest.Fault{Op: zkserver.OpGetData, Do: zksynctest.Error(-127), Times: -1})
				start := time.Now()
				reads := []*session.InboxRead{in.Data("/a", "a"), in.Data("/b", "b")}
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
				defer cancel()
				var err error
				for err == nil { // the Inbox reports its connection first
					_, err = in.Receive(ctx)
				}
				mustBe(t, err, context.DeadlineExceeded)
				if lines, _ := logged(logs, "a call waited", start); len(lines) != 1 || !strings.Contains(lines[0], "throttled") {
					t.Errorf("reports %v, want one that says throttled", lines)
				}
				if n := m.Stats().WaitCount; n != 1 {
					t.Errorf("%d waits, want one for both reads", n)
				}
				if err := in.Refusal(); err == nil || !strings.Contains(err.Error(), "throttled") {
					t.Errorf("Refusal: %v", err)
				}
				end(t, in, reads, fault)
				synctest.Wait()
				if n, err := m.Stats().WaitCount, in.Refusal(); n != 0 || err != nil {
					t.Errorf("%d waits, Refusal: %v; want none", n, err)
				}
			})
		})
	}
}

// A read of an Inbox whose answers are lost one after another is reported, also if each attempt lasts for seconds, and one
// lost connection alone is not.
func TestLostReadsOfAnInboxAreReported(t *testing.T) {
	for _, times := range []int{1, -1} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			opt, logs := observed()
			m := connect(t, srv, three, session.WithTimeout(4*time.Second), opt)
			s := current(t, m)
			create(t, s, "/a", 0)
			in := inbox(t, s)
			fault := srv.Inject(zksynctest.Fault{Op: zkserver.OpGetData, Do: zksynctest.Drop, Times: times})
			start := time.Now()
			in.Data("/a", "a")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for err := error(nil); err == nil; {
				_, err = in.Receive(ctx)
			}
			lines, _ := logged(logs, "a call waited", start)
			if (len(lines) > 0) != (times < 0) {
				t.Errorf("a fault that strikes %d times: reports %v", times, lines)
			}
			fault.Remove()
		})
	}
}
