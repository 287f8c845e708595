package zksync_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksynctest"
)

// permissions are the permissions that a user may lack in the directories of a
// primitive.
var permissions = []struct {
	name string
	perm int32
}{{"CREATE", zk.PermCreate}, {"READ", zk.PermRead}, {"DELETE", zk.PermDelete}, {"WRITE", zk.PermWrite}, {"any permission", zk.PermAll}}

// deny creates the directories of all primitives so that the Manager of the call
// lacks a permission there, and others do not.
func (st *stage) deny(perm int32, dirs ...string) {
	st.t.Helper()
	others := zk.DigestACL(zk.PermAll, "other", "secret")
	acl := others
	if left := zk.PermAll &^ perm; left != 0 {
		acl = append(acl, zk.WorldACL(left)...)
	}
	for _, dir := range dirs {
		_, err := live(st.t, st.other).Create(st.ctx, dir, nil, 0, acl...)
		st.must(err)
	}
}

// A user without a permission gets an error, or a result that does not need the permission, and no call waits for one.
// No call repeats a request that was refused for good; only the removal of a znode is tried again now and then. To see this test fail, make zk.ErrNoAuth a transient error in
// the table of session.ClassOf.
func TestWithoutPermission(t *testing.T) {
	t.Parallel()
	// To set the stage for these takes the permissions.
	needed := []string{"RWMutex.Downgrade", "Member.Set", "Message.Ack", "DoubleBarrier.Leave", "Mutex.Lock behind a goroutine"}
	for i, c := range blockingCalls {
		if slices.Contains(needed, c.name) {
			continue
		}
		for j, p := range permissions {
			if !chosen(i, j, 2) {
				continue
			}
			t.Run(c.name+" without "+p.name, func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					st := newStage(t, srv)
					st.deny(p.perm, "/stage")
					if !strings.HasPrefix(c.name, "Barrier.") { // a Barrier's directory is the parent
						st.deny(p.perm, stagePath)
					}
					if strings.HasPrefix(c.name, "Semaphore.") {
						st.deny(p.perm, stagePath+"/locks", stagePath+"/leases")
					}
					if strings.HasPrefix(c.name, "Queue.") {
						st.deny(p.perm, stagePath+"/zksync-claims", stagePath+"/zksync-markers")
					}
					play := c.play(st)
					synctest.Wait()
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					r := begin(ctx, st, play)
					synctest.Wait()
					if play.release != nil {
						play.release()
					}
					err, ok := r.result(5 * time.Second)
					if !ok {
						cancel()
						<-r.done
						return
					}
					if errors.Is(err, context.DeadlineExceeded) {
						t.Error("the call has waited for a permission:", err)
					}
					told := errors.Is(err, zk.ErrNoAuth) || err != nil && strings.Contains(err.Error(), "a directory of its own")
					if err != nil && !told && !slices.ContainsFunc(c.fails, func(fail error) bool { return errors.Is(err, fail) }) {
						t.Error("the call:", err)
					}
					if err := r.end(err); err != nil && !errors.Is(err, zk.ErrNoAuth) {
						t.Error("the end of the call:", err)
					}
					if p.perm&zk.PermDelete == 0 {
						st.checkNothing()
						st.checkQuiet()
					} else {
						st.checkRemovals()
					}
				})
			})
		}
	}
}
