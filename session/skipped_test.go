package session_test

import (
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// An answer that is lost on a live connection is noticed as soon as a later request is answered, and the next
// connection determines its outcome.
func TestALostAnswerIsMissed(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		if err := s.MakeDir(t.Context(), "/dir"); err != nil {
			t.Fatal(err)
		}
		srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, At: zkserver.BeforeReply, Do: zkserver.Drop})
		var path string
		created := make(chan error, 1)
		go func() {
			var err error
			path, err = s.CreateProtected(t.Context(), "/dir/x-", nil, zk.FlagEphemeralSequential)
			created <- err
		}()
		synctest.Wait()
		select {
		case err := <-created:
			t.Fatalf("returned %v though nothing was answered", err)
		default:
		}
		if _, _, err := s.Get(t.Context(), "/dir"); err != nil {
			t.Errorf("the request that was answered: %v", err)
		}
		if err := <-created; err != nil {
			t.Error(err)
		}
		if names, _, err := s.Children(t.Context(), "/dir"); err != nil || len(names) != 1 || "/dir/"+names[0] != path {
			t.Errorf("created %q, and there is %v; error %v", path, names, err)
		}
		if s.Err() != nil {
			t.Errorf("the session ended: %v", s.Err())
		}
	})
}
