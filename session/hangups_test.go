package session_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// If a request above jute.maxbuffer of the servers ends one connection after another, a log line within four seconds
// and the error of every call that waits name the request, also while a lock is held. Breaks if connection.Done does
// not call hangUps.done.
func TestARequestAboveTheServersLimitIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		for _, held := range []bool{false, true} {
			opt, logs := observed()
			m := connect(t, srv, three, opt)
			s := current(t, m)
			create(t, s, "/large", 0)
			if held {
				if err := zksync.NewMutex(m, "/lock").Lock(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
			defer cancel()
			put := make(chan error)
			go func() { put <- zksync.NewQueue(m, "/queue").Put(ctx, make([]byte, 9000)) }()
			err := <-put
			mustBe(t, err, context.DeadlineExceeded)
			if !strings.Contains(err.Error(), "jute.maxbuffer") {
				t.Errorf("error %v, want one that names jute.maxbuffer", err)
			}
			lines, after := logged(logs, "servers hang up at a request", start)
			if len(after) == 0 || after[0] > 4*time.Second || len(after) > 5 || !strings.Contains(lines[0], "operation:multi") {
				t.Errorf("reports %v after %v, want a few, and one within 4s", lines, after)
			}
			if _, err := s.Set(t.Context(), "/large", make([]byte, 2000), 0); err != nil {
				t.Error(err)
			}
			// The reason is not told of a later wait.
			time.Sleep(time.Minute)
			srv.Stop()
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, _, err := s.Get(ctx, "/large"); err == nil || strings.Contains(err.Error(), "jute.maxbuffer") {
				t.Errorf("error %v, want the end of ctx, and no other reason than the outage", err)
			}
			if err := srv.Start(); err != nil {
				t.Fatal(err)
			}
			m.Close()
			m = connect(t, srv, three)
			if err := current(t, m).Delete(t.Context(), "/large", -1); err != nil {
				t.Fatal(err)
			}
			m.Close()
		}
	}, zksynctest.WithConfig(zkserver.Config{MaxFrame: 8192}))
}

// Connections that end at a request that the servers accept in the end are no reason to name jute.maxbuffer. Breaks if
// an answer does not set times to 0.
func TestHangUpsAtOtherRequestsAreNotReported(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		opt, logs := observed()
		s := current(t, connect(t, srv, three, opt))
		create(t, s, "/large", 0)
		start := time.Now()
		for i := range 8 {
			srv.Inject(zksynctest.Fault{Op: zkserver.OpSetData, Do: zksynctest.Disconnect, Times: 1})
			if _, err := s.Set(t.Context(), "/large", make([]byte, 2000), int32(i)); err != nil {
				t.Fatal(err)
			}
		}
		if lines, _ := logged(logs, "servers hang up at a request", start); len(lines) != 0 {
			t.Errorf("reports %v, want none", lines)
		}
	})
}
