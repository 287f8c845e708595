package zksync_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A consumer delivers a new message after a few requests if other clients have removed the thousands of messages that it
// had listed before (partition_list.go: forgetMissing).
func TestNewMessageBehindManyThatAreGone(t *testing.T) {
	for name, receive := range deliveries {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				const listed = 5000
				offer(t, srv.Connect(t), queuePath, 0, listed)
				q := zksync.NewQueue(srv.Connect(t), queuePath, zksync.WithPrefetch(1))
				defer closeQueue(t, q)
				want(t, receive(t, q, 1), numbers(0, 1))
				synctest.Wait()
				names, _ := srv.Children(queuePath)
				for _, name := range names {
					// The first ones stay: the channel has claimed one of them.
					if name > "qn-0000000004" && name < "qn-9" {
						must(t, srv.Delete(queuePath+"/"+name))
					}
				}
				time.Sleep(time.Minute)
				offer(t, srv.Connect(t), queuePath, listed, listed+1)
				srv.ResetOps()
				for data := ""; data != numbers(listed, listed+1)[0]; {
					data = receive(t, q, 1)[0]
				}
				if n := len(requests(srv)); n > 200 {
					t.Errorf("%d requests until the new message, want a few", n)
				}
			})
		})
	}
}
