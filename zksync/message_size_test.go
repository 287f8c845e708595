package zksync_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// The largest message that Put accepts can be put off, and be moved to another queue, while the consumer has many
// other messages.
func TestLargestMessageCanBeSettled(t *testing.T) {
	for _, limit := range []int{1<<20 - 1, 5000} {
		largest := func(t *testing.T, srv servers.Server) {
			path := servers.Path(t)
			m := srv.Connect(t, session.WithMaxRequest(limit))
			q, other := zksync.NewQueue(m, path+"/queue"), zksync.NewQueue(m, path+"/messages-that-have-failed-again-and-again")
			defer q.Close()
			defer other.Close()
			var most int
			_, after, _ := strings.Cut(q.Put(t.Context(), make([]byte, limit)).Error(), "want at most ")
			fmt.Sscan(after, &most)
			must(t, q.Put(t.Context(), make([]byte, most)))
			for range 100 {
				put(t, q, "small")
			}
			large := <-q.Messages()
			for range 50 { // every second one is settled, so that the ledger has many names
				must(t, (<-q.Messages()).Ack(t.Context()))
				<-q.Messages()
			}
			must(t, large.Retry(t.Context(), 0))
			large = <-q.Messages()
			if len(large.Data) != most {
				t.Fatalf("%d bytes, want %d", len(large.Data), most)
			}
			must(t, large.MoveTo(t.Context(), other))
			if data, ok, err := other.TryTake(t.Context()); !ok || len(data) != most {
				t.Errorf("%d bytes were moved: %v", len(data), err)
			}
		}
		t.Run(fmt.Sprint(limit), func(t *testing.T) { servers.Both(t, largest) })
	}
}
