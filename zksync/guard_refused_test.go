package zksync_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A holder learns that another client deleted its znode, also if the server refused a read of that znode for an unknown
// reason before. The holder repeats the request without hurry. To see this test fail, drop the case of ClassUnknown
// from holdGuard.guard.
func TestHolderLearnsOfARemovalAfterARefusal(t *testing.T) {
	for _, code := range []int32{-1, -3, -5, -100, -999} {
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
