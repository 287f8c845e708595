package zksync_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A leader of LayoutEphemeral whose znode was removed and that does not know it yet resigns with ErrLost, and does not
// delete the znode of the next leader, which was created in the same way.
func TestResignationLeavesTheNextLeader(t *testing.T) {
	for name, reads := range map[string]int{"in the first moment of the hold": 0, "while reads are refused": 3} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				ma := srv.Connect(t)
				a := zksync.NewElection(ma, path, zksync.WithLayout(zksync.LayoutEphemeral))
				_, err := a.Campaign(t.Context())
				must(t, err)
				if reads > 0 {
					srv.Inject(zksynctest.Fault{Session: live(t, ma).ID(), Op: zkserver.OpGetData, Times: reads, Do: zksynctest.Error(-127)})
					time.Sleep(110 * time.Millisecond)
				}
				must(t, srv.Delete(path))
				b := zksync.NewElection(srv.Connect(t), path, zksync.WithLayout(zksync.LayoutEphemeral))
				next, err := b.Campaign(t.Context())
				must(t, err)
				if err := a.Resign(); !errors.Is(err, zksync.ErrLost) {
					t.Errorf("Resign: %v, want ErrLost", err)
				}
				time.Sleep(time.Minute)
				if next.Err() != nil {
					t.Errorf("the next leadership ended: %v", context.Cause(next))
				}
			})
		})
	}
}

// WithMaxWait bounds the wait of Run, also if sessions are lost meanwhile.
func TestRunWaitsNoLongerThanMaxWait(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		_, err := zksync.NewElection(srv.Connect(t), master).Campaign(t.Context())
		must(t, err)
		m := srv.Connect(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		running := start(func() error {
			return zksync.NewElection(m, master, zksync.WithMaxWait(time.Minute)).Run(ctx, func(context.Context) error { return nil })
		})
		began := time.Now()
		for range 2 {
			time.Sleep(25 * time.Second)
			must(t, srv.ExpireSession(live(t, m).ID()))
		}
		err = <-running
		if took := time.Since(began); took != time.Minute || !errors.Is(err, zksync.ErrMaxWait) {
			t.Errorf("Run took %v: %v", took, err)
		}
	})
}

// WithMaxWait bounds the wait of Run also while the Manager has no session, before the first campaign and after a
// leadership that was lost.
func TestRunWaitsForASessionNoLongerThanMaxWait(t *testing.T) {
	for _, led := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			lose := func() time.Time {
				srv.HangHandshake(true)
				srv.Partition(live(t, m).ID())
				for st := range m.States(ctx) {
					if st == session.Lost || st == session.Connecting {
						break
					}
				}
				return time.Now()
			}
			var began time.Time
			if !led {
				began = lose()
			}
			err := zksync.NewElection(m, master, zksync.WithMaxWait(time.Minute)).Run(ctx, func(lead context.Context) error {
				began = lose()
				<-lead.Done()
				return nil
			})
			if took := time.Since(began); took < time.Minute || took > time.Minute+time.Second || !errors.Is(err, zksync.ErrMaxWait) {
				t.Errorf("led %v: Run took %v after the loss of the session: %v", led, took, err)
			}
			srv.HangHandshake(false)
		})
	}
}
