package zksync_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// Consumers learn of the deaths of others also when the count of the changes in the directory of the claims wraps, after
// a thousand million consumers.
func TestDeathsBeyondAThousandMillionConsumers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		put := zksync.NewQueue(srv.Connect(t), queuePath)
		must(t, put.Put(t.Context(), nil))
		_, err := put.Take(t.Context())
		must(t, err)
		must(t, srv.SetNextSequence(queuePath+"/zksync-claims", 1<<30-4))
		for i := range 10 {
			want := fmt.Sprint(i)
			must(t, put.Put(t.Context(), []byte(want)))
			m := srv.Connect(t)
			dying := zksync.NewQueue(m, queuePath)
			next(t, dying.Messages(), want)
			other := zksync.NewQueue(srv.Connect(t), queuePath)
			messages := other.Messages()
			synctest.Wait()
			must(t, m.Close())
			ack(t, next(t, messages, want))
			must(t, other.Close())
			must(t, dying.Close())
		}
	})
}

// When the numbers in the line of idle consumers are spent, the line begins anew, and a message wakes few consumers again.
func TestLineOfIdleConsumersBeginsAnew(t *testing.T) {
	const consumers, rounds = 16, 40
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		put := zksync.NewQueue(srv.Connect(t), queuePath)
		got := make(chan string)
		for range consumers {
			q := zksync.NewQueue(srv.Connect(t), queuePath)
			defer q.Close() // before the Managers: the last message would come again
			go func() {
				for data := range q.Chan() {
					got <- string(data)
				}
			}()
		}
		// perMessage returns the number of requests for a message that comes while all consumers wait.
		perMessage := func() float64 {
			before := len(requests(srv))
			for i := range rounds {
				<-time.After(time.Second) // of the bubble: all consumers wait
				must(t, put.Put(t.Context(), []byte(fmt.Sprint(i))))
				if data := <-got; data != fmt.Sprint(i) {
					t.Errorf("got %q, want %d", data, i)
				}
			}
			return float64(len(requests(srv))-before) / rounds
		}
		perMessage()
		usual := perMessage()
		must(t, srv.SetNextSequence(queuePath+"/zksync-idle", 1<<31-1))
		perMessage()
		if after := perMessage(); after > 1.5*usual { // 59 with all consumers in the first place
			t.Errorf("%.1f requests for a message, and %.1f before the numbers were spent", after, usual)
		}
		for _, name := range inLine(srv, queuePath+"/zksync-idle") {
			if name > "idle-0000001000" {
				t.Errorf("%s is in line, want a number of a new directory", name)
			}
		}
	})
}

// Messages that a consumer skips have entries among the claims, which would fill a request. Messages between them are
// delivered all the same, also after an operator has deleted the order znode. When the skipped ones are gone, so are their
// entries, for the same consumer and for a new one.
func TestSkippedMessagesThatAreGoneMakeRoom(t *testing.T) {
	for name, anew := range map[string]bool{"the same consumer": false, "a new consumer": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				owner := srv.Connect(t, session.WithAuth("digest", []byte("owner:secret")), session.WithACL(zk.WorldACL(zk.PermAll)...))
				put := zksync.NewQueue(owner, queuePath)
				consumer := srv.Connect(t, session.WithMaxRequest(2048))
				q := zksync.NewQueue(consumer, queuePath)
				deliver := func(i int) {
					must(t, put.Put(t.Context(), nil))
					select {
					case <-q.Chan():
					case <-time.After(5 * time.Minute):
						t.Fatalf("message %d is not delivered", i)
					}
				}
				const n = 600
				var unreadable []string
				for i := range n {
					deliver(i)
					path, err := live(t, owner).Create(t.Context(), queuePath+"/qn-", nil, zk.FlagSequence, zk.AuthACL(zk.PermAll)...)
					must(t, err)
					unreadable = append(unreadable, path)
				}
				if anew {
					must(t, q.Close())
				} else {
					order, _ := srv.Get(queuePath + "/zksync-claims")
					must(t, srv.Delete(queuePath+"/zksync-claims/"+string(order)))
					deliver(n)
				}
				for _, path := range unreadable {
					must(t, srv.Delete(path))
				}
				if anew {
					q = zksync.NewQueue(consumer, queuePath)
				}
				for i := range 10 {
					deliver(n + i)
					time.Sleep(time.Minute)
				}
				names, _ := srv.Children(queuePath + "/zksync-claims")
				for _, name := range names {
					if data, ok := srv.Get(queuePath + "/zksync-claims/" + name); !ok || len(data) > 100 {
						t.Errorf("%s has %d bytes of claims, and no message is left", name, len(data))
					}
				}
			})
		})
	}
}
