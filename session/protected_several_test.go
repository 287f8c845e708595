package session_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// createThree creates three znodes of one GUID, and removes /lock, in one transaction.
func createThree(ctx context.Context, s *session.Session) ([]string, []zk.MultiResponse, error) {
	create := &zk.CreateRequest{Path: session.Protect("/dir/x-"), Flags: zk.FlagEphemeralSequential}
	return s.MultiProtected(ctx, &zk.DeleteRequest{Path: "/lock", Version: -1}, create, create, create)
}

// A MultiProtected of several operations happens exactly once, for each answer that can be lost.
func TestMultiProtectedOfSeveral(t *testing.T) {
	for _, at := range []zkserver.Moment{zkserver.BeforeCommit, zkserver.AfterCommit, zkserver.BeforeReply} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprint(at, " lost ", lost), func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					s := current(t, connect(t, srv, three))
					create(t, s, "/dir", 0)
					create(t, s, "/lock", 0)
					if lost {
						srv.Inject(zkserver.Fault{Op: zkserver.OpMulti, At: at, Do: zkserver.Disconnect})
					}
					paths, results, err := createThree(t.Context(), s)
					if err != nil {
						t.Fatal(err)
					}
					if found := lost && at != zkserver.BeforeCommit; found != (results == nil) {
						t.Errorf("results %v", results)
					}
					var there []string
					for _, name := range children(srv, "/dir") {
						there = append(there, "/dir/"+name)
					}
					slices.Sort(there)
					slices.Sort(paths)
					if len(there) != 3 || !slices.Equal(paths, there) || there[0][:45] != there[2][:45] {
						t.Errorf("created %v, there are %v", paths, there)
					}
				})
			})
		}
	}
}

// A MultiProtected that is cancelled leaves no znode.
func TestNothingIsLeftOfACancelledMultiProtected(t *testing.T) {
	for _, at := range []zkserver.Moment{zkserver.BeforeCommit, zkserver.AfterCommit, zkserver.BeforeReply} {
		for _, fault := range []zkserver.Action{{}, zkserver.Disconnect, zkserver.Drop} {
			t.Run(fmt.Sprint(at, fault), func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					s := current(t, connect(t, srv, three))
					create(t, s, "/dir", 0)
					create(t, s, "/lock", 0)
					ctx, cancel := context.WithCancel(t.Context())
					f := zkserver.Fault{Op: zkserver.OpMulti, At: at, Do: zkserver.Call(func() {
						cancel()
						synctest.Wait() // the caller has gone
					})}
					srv.Inject(f)
					f.Do = fault
					srv.Inject(f)
					// The janitor has to try again.
					srv.Inject(zkserver.Fault{Op: zkserver.OpDelete, Nth: 2, At: zkserver.BeforeCommit, Do: zkserver.Disconnect})
					srv.Inject(zkserver.Fault{Op: zkserver.OpGetChildren2, At: zkserver.BeforeReply, Do: zkserver.Disconnect})
					time.AfterFunc(time.Second, func() { srv.Disconnect(s.ID()) })
					_, _, err := createThree(ctx, s)
					mustBe(t, err, context.Canceled)
					time.Sleep(time.Minute)
					if names := children(srv, "/dir"); len(names) > 0 {
						t.Errorf("left behind: %v", names)
					}
				})
			})
		}
	}
}

// MultiProtected refuses operations that do not have exactly one protected path.
func TestMultiProtectedWantsOnePath(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		_, _, err := s.MultiProtected(t.Context(), &zk.CreateRequest{Path: session.Protect("/a")}, &zk.CreateRequest{Path: session.Protect("/a")})
		if err == nil || !strings.Contains(err.Error(), "exactly one path") {
			t.Errorf("error %v", err)
		}
	})
}
