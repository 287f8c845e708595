package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A read that a server refuses again and again is a Wait, and its error has the refusal when its ctx ends, for each code
// of a refusal.
func TestReadsBehindRefusalsStateTheReason(t *testing.T) {
	for _, code := range []zkserver.Code{-127, -122, -7, -119} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				s := current(t, m)
				create(t, s, "/e", 0)
				srv.Inject(zkserver.Fault{Op: zkserver.OpGetData, Path: "/e", At: zkserver.BeforeCommit, Do: zkserver.Error(code), Times: -1})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				waits := make(chan int, 1)
				time.AfterFunc(30*time.Second, func() { waits <- len(m.Stats().Waits) })
				_, _, err := s.Get(ctx, "/e")
				if n := <-waits; session.WaitReason(err) == nil || n == 0 {
					t.Errorf("%d waits, error %v", n, err)
				}
			})
		})
	}
}

// A znode is never created outside the chroot.
func TestSequentialAtTheChroot(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three+"/app", session.WithCreateChroot()))
		path, err := s.Create(t.Context(), "/", nil, zk.FlagSequence)
		if err != nil {
			t.Fatal(err)
		}
		names, _ := srv.Children("/")
		for _, name := range names {
			if strings.HasPrefix(name, "app") && name != "app" {
				t.Errorf("Create under the chroot /app created /%s outside of it", name)
			}
		}
		if ok, _, err := s.Exists(t.Context(), path); !ok {
			t.Errorf("the path %s that Create returned does not exist: %v", path, err)
		}
	})
}

// Connect succeeds if a server that is slower than the timeout of WithTimeout grants a longer one.
func TestConnectWithATimeoutBelowTheServers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		for _, d := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond} {
			link := srv.NewLink(t)
			link.Delay(20 * time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			m, err := session.Connect(ctx, three, session.WithDialer(link.Dial), session.WithTimeout(d))
			cancel()
			if err != nil {
				t.Errorf("timeout %v, where the servers grant 4s, over a link of 20 ms: %v", d, err)
				continue
			}
			m.Close()
		}
	})
}
