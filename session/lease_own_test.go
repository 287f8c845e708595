package session_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A held lease that is given another znode stays held, although a check of the former znode was in flight: the
// context of the session ends at the Deadline. To see this test fail, remove the condition on the path in
// keeper.sendCommit, or the statement of Lease.Own that counts the lease again.
func TestLeaseIsGivenAnotherZnodeDuringACheck(t *testing.T) {
	const moment = timeout / 100
	for name, first := range map[string]bool{"answered before Own": true, "answered after Own": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				s := current(t, connect(t, srv, three))
				create(t, s, "/old", zk.FlagEphemeral)
				l := hold(t, s)
				l.Own("/old")
				time.Sleep(timeout / 6) // the first check follows in less than T/5
				// This is long enough for that check, and too short for the connection to be closed.
				srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: "/new", Do: zksynctest.Delay(timeout / 5)})
				check := srv.Inject(zksynctest.Fault{
					Op: zkserver.OpMulti, At: zksynctest.BeforeReply, Do: zksynctest.Delay(moment),
					Match: func(op zkserver.Op) bool { return len(op.Sub) == 1 && op.Sub[0].Path == "/old" },
				})
				_, err := s.Multi(t.Context(), &zk.DeleteRequest{Path: "/old", Version: -1}, &zk.CreateRequest{Path: "/new", Flags: zk.FlagEphemeral})
				if err != nil {
					t.Fatal(err)
				}
				if first {
					time.Sleep(2 * moment)
				}
				l.Own("/new")
				time.Sleep(timeout)
				if check.Count() == 0 {
					t.Fatal("the former znode was not checked behind the transaction")
				}
				srv.Partition(s.ID())
				deadline := s.Deadline()
				<-s.Done()
				if late := time.Since(deadline); late > 0 {
					t.Errorf("the context of the session ended %v after the Deadline", late)
				}
			})
		})
	}
}

// The observer gets the end of a hold when the owner ends the hold, with ErrRemoved if the znode was removed, and
// without an error if a transaction of the owner has replaced the znode (Lease.lose).
func TestHoldThatGoesOnIsNotReportedAsEnded(t *testing.T) {
	for _, replaced := range []bool{true, false} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			var ended []session.HoldEnded
			m := srv.Connect(t, session.WithObserver(session.Observer{HoldEnded: func(h session.HoldEnded) { ended = append(ended, h) }}))
			s := current(t, m)
			create(t, s, "/old", zk.FlagEphemeral)
			l := hold(t, s)
			l.Own("/old")
			if _, err := s.Multi(t.Context(), &zk.DeleteRequest{Path: "/old", Version: -1}, &zk.CreateRequest{Path: "/new", Flags: zk.FlagEphemeral}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(timeout) // the keeper checks the former znode meanwhile
			if replaced {
				l.Own("/new")
			}
			time.Sleep(time.Minute)
			if len(ended) != 0 {
				t.Fatalf("reported ahead of End: %+v", ended)
			}
			l.End()
			switch {
			case len(ended) != 1:
				t.Errorf("%d ends were reported, want 1", len(ended))
			case replaced && ended[0].Lost != nil:
				t.Errorf("a hold that was released is reported as lost: %v", ended[0].Lost)
			case !replaced:
				mustBe(t, ended[0].Lost, session.ErrRemoved)
			}
		})
	}
}

// A lease whose znode has an invalid path is held: another znode proves the session alive.
func TestLeaseOfAnInvalidPathIsHeld(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		hold(t, s).Own("no-slash")
		time.Sleep(3 * timeout)
		if s.Err() != nil {
			t.Errorf("the server answers every request, and the session has ended: %v", s.Err())
		}
	})
}
