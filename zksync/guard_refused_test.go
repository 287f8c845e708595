package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A holder learns that another client deleted its znode, also if the server refused a read of that znode for whatever
// reason before. The holder repeats the request without hurry. To see this test fail, return from holdGuard.guard in
// the default case.
func TestHolderLearnsOfARemovalAfterARefusal(t *testing.T) {
	for _, code := range []zkserver.Code{-1, -3, -5, -6, -8, -100, -102, -110, -125, -999} {
		for _, times := range []int{1, 2, 10} {
			t.Run(fmt.Sprintf("code %d, %d times", code, times), func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					mu := zksync.NewMutex(srv.Connect(t), path)
					refused := srv.Inject(zksynctest.Fault{Op: zkserver.OpGetData, Times: times, Do: zksynctest.Error(code)})
					held, _ := hold(t, mu)
					time.Sleep(time.Minute)
					if n := refused.Count(); n != times {
						t.Errorf("the znode was read %d times within a minute, want %d and once more", n, times)
					}
					if held.Err() != nil {
						t.Fatalf("the hold ended by refusals: %v", held.Err())
					}
					must(t, srv.Delete(path+"/"+wantInLine(t, srv, 1)[0]))
					if cause := ended(t, held, time.Second); !errors.Is(cause, zksync.ErrLost) {
						t.Errorf("the hold ended with %v, want ErrLost", cause)
					}
					if err := mu.Unlock(); !errors.Is(err, zksync.ErrLost) {
						t.Errorf("Unlock: %v, want ErrLost", err)
					}
				})
			})
		}
	}
}

// A holder learns that another client deleted its znode, also if that client had written more data into the znode than
// the holder may receive. The data end connections only once.
func TestHolderLearnsOfARemovalAfterLargeData(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t, session.WithMaxAnswer(1<<10))
		mu := zksync.NewMutex(m, path)
		held, _ := hold(t, mu)
		time.Sleep(time.Second)
		znode := path + "/" + wantInLine(t, srv, 1)[0]
		must(t, srv.Set(znode, make([]byte, 2<<10)))
		time.Sleep(10 * time.Second)
		conn := live(t, m).Connection()
		time.Sleep(time.Minute)
		must(t, srv.Set(znode, make([]byte, 3<<10)))
		time.Sleep(time.Minute)
		if now := live(t, m).Connection(); now != conn {
			t.Errorf("%d more connections ended, want none", now-conn)
		}
		if held.Err() != nil {
			t.Fatalf("the hold ended by large data: %v", context.Cause(held))
		}
		must(t, srv.Delete(znode))
		if cause := ended(t, held, time.Second); !errors.Is(cause, zksync.ErrLost) {
			t.Errorf("the hold ended with %v, want ErrLost", cause)
		}
		if err := mu.Unlock(); !errors.Is(err, zksync.ErrLost) {
			t.Errorf("Unlock: %v, want ErrLost", err)
		}
	})
}

// A candidate of LayoutEphemeral may lead after another client deleted the znode of a leader of the same Manager, also
// if the server refused that leader a read of the znode.
func TestSiblingLeadsAfterARemovalAndARefusal(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		a := zksync.NewElection(m, path, zksync.WithLayout(zksync.LayoutEphemeral), zksync.WithID("a"))
		b := zksync.NewElection(m, path, zksync.WithLayout(zksync.LayoutEphemeral), zksync.WithID("b"))
		srv.Inject(zksynctest.Fault{Op: zkserver.OpGetData, Do: zksynctest.Error(-102)})
		lead, err := a.Campaign(t.Context())
		must(t, err)
		time.Sleep(time.Minute)
		must(t, srv.Delete(path))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err = b.Campaign(ctx); err != nil {
			t.Errorf("the other candidate: %v", err)
		}
		if cause := ended(t, lead, time.Second); !errors.Is(cause, zksync.ErrLost) {
			t.Errorf("the first leadership ended with %v, want ErrLost", cause)
		}
	})
}

// A hold whose znodes may not be read costs about one request a second, regardless of the number of its znodes.
func TestRefusalsOfAHoldAreCheap(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		refused := srv.Inject(zksynctest.Fault{Op: zkserver.OpGetData, Times: -1, Do: zksynctest.Error(-102)})
		sem := zksync.NewSemaphore(srv.Connect(t), path, 5)
		must(t, sem.Acquire(t.Context(), 5))
		time.Sleep(time.Minute)
		before := refused.Count()
		const minutes = 10
		time.Sleep(minutes * time.Minute)
		if n := refused.Count() - before; n < minutes*60/2 || n > minutes*60*2 {
			t.Errorf("%d requests within %d minutes, want about one a second", n, minutes)
		}
		must(t, sem.Release(5))
	})
}
