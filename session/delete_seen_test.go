package session_test

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// DeleteSeen sends its deletion once behind each look, over the connection of the look: a znode that another client has
// created at the path since the look stays, also with the same version.
func TestDeleteSeen(t *testing.T) {
	errOther := errors.New("the znode of another client")
	for name, f := range map[string]zksynctest.Fault{
		"no fault":       {},
		"refused":        {Op: zkserver.OpDelete, At: zkserver.BeforeCommit, Do: zksynctest.Error(-127)},
		"lost answer":    {Op: zkserver.OpDelete, At: zkserver.AfterCommit, Do: zksynctest.Disconnect},
		"new connection": {Op: zkserver.OpExists, At: zkserver.BeforeReply, Do: zksynctest.Disconnect},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				s := current(t, connect(t, srv, three))
				create(t, s, "/x", 0)
				before := f
				before.Do = zksynctest.Call(func() {
					if name == "refused" {
						mustBe(t, srv.Delete("/x"), nil)
					}
					if name != "new connection" {
						mustBe(t, srv.Create("/x", []byte("another")), nil)
					}
				})
				if name != "no fault" {
					srv.Inject(before)
					srv.Inject(f)
				}
				looks := 0
				err := s.DeleteSeen(t.Context(), "/x", func(exists bool, stat *zk.Stat, err error) (int32, error) {
					if looks++; err != nil || !exists {
						t.Errorf("look: %v, %v", exists, err)
					} else if stat.DataLength > 0 {
						return 0, errOther
					}
					return stat.Version, nil
				})
				wantErr, wantLooks, wantLeft := error(nil), 1, false
				switch name {
				case "refused":
					wantErr, wantLooks, wantLeft = errOther, 2, true
				case "lost answer":
					wantErr, wantLeft = session.ErrConnectionLost, true
				case "new connection":
					wantLooks = 2
				}
				mustBe(t, err, wantErr)
				if _, left := srv.Get("/x"); looks != wantLooks || left != wantLeft {
					t.Errorf("%d looks, the znode is left: %v; want %d, %v", looks, left, wantLooks, wantLeft)
				}
			})
		})
	}
}
