package zksync_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A participant that crashes delays the others for no longer than one session timeout after the end of its session.
func TestCrashDelaysOneTimeout(t *testing.T) {
	for i := range 20 {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m, other := srv.Connect(t), srv.Connect(t)
			a, b := zksync.NewDoubleBarrier(m, path, 2), zksync.NewDoubleBarrier(other, path, 2)
			in := entering(t.Context(), a)
			mustEnter(t, b)
			mustEnd(t, "Enter", in, nil)
			out := leaving(t.Context(), a)
			synctest.Wait()
			timeout := live(t, m).Timeout()
			time.Sleep(time.Duration(i) * timeout / 10)
			must(t, srv.ExpireSession(live(t, other).ID()))
			began := time.Now()
			must(t, <-out)
			if took := time.Since(began); took > timeout {
				t.Errorf("Leave returned %v after the session of the other participant had ended, want at most %v", took, timeout)
			}
		})
	}
}

// The Leave of a participant whose znode was removed counts the participants that are inside, and deletes ready if there
// is none.
func TestLeaveOfARemovedParticipant(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		b := zksync.NewDoubleBarrier(srv.Connect(t), path, 1, zksync.WithID("a"))
		mustEnter(t, b)
		must(t, srv.Delete(path+"/member-a"))
		err := b.Leave(t.Context())
		var count *zksync.CountError
		if !errors.Is(err, zksync.ErrLost) || !errors.As(err, &count) || count.There != 0 {
			t.Errorf("Leave: %v, want ErrLost and a count of 0", err)
		}
		if names, _ := srv.Children(path); len(names) > 0 {
			t.Errorf("%v is left", names)
		}
	})
}
