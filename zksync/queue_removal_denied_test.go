package zksync_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A user that may put and read but not delete messages gets an error, and withholds no message from other consumers.
func TestConsumingWithoutPermissionToRemove(t *testing.T) {
	for _, how := range []string{"Chan", "Messages", "Take"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				s := live(t, m)
				if err := s.MakeDir(t.Context(), "/queues"); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Create(t.Context(), queuePath, nil, 0, zk.WorldACL(zk.PermRead|zk.PermCreate|zk.PermWrite)...); err != nil {
					t.Fatal(err)
				}
				offer(t, m, queuePath, 0, 3)
				q := zksync.NewQueue(m, queuePath)
				switch how {
				case "Chan":
					want(t, receive(t, q.Chan(), 1), numbers(0, 1))
					for open := true; open; {
						select {
						case _, open = <-q.Chan():
						case <-time.After(time.Minute):
							t.Fatal("the channel is still open")
						}
					}
					if err := q.Err(); !errors.Is(err, zk.ErrNoAuth) {
						t.Error("Err:", err)
					}
				case "Messages":
					msg := next(t, q.Messages(), "0")
					if err := msg.Ack(t.Context()); !errors.Is(err, zk.ErrNoAuth) {
						t.Error("Ack:", err)
					}
					synctest.Wait() // until the claim of 0 is released, ahead of the claim of 1
					nack(t, next(t, q.Messages(), "1"))
					synctest.Wait()
					next(t, q.Messages(), "2") // was claimed in advance
					next(t, q.Messages(), "0")
				case "Take":
					if data, err := q.Take(t.Context()); !errors.Is(err, zk.ErrNoAuth) {
						t.Errorf("Take: %q, %v", data, err)
					}
				}
				synctest.Wait()
				if how == "Chan" {
					wantLeft(t, srv, 3, 0)
				}
				began := time.Now()
				closeQueue(t, q)
				if took := time.Since(began); took > 0 {
					t.Errorf("Close took %v", took)
				}
				wantLeft(t, srv, 3, 0)
			})
		})
	}
}
