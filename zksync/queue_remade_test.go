package zksync_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A remadeQueue is a queue whose messages have the same names when their directory is
// created again.
type remadeQueue struct {
	commonQueue
	put      func(data string)
	dir      func() string     // of the messages of put
	putLater func(data string) // in another directory, to be delivered behind the messages of put; nil if there is none
	laterDir func() string     // of the messages of putLater
}

var remadeQueues = map[string]func(t *testing.T, srv *zksynctest.Server, m *session.Manager) remadeQueue{
	"Queue": func(t *testing.T, srv *zksynctest.Server, m *session.Manager) remadeQueue {
		q := zksync.NewQueue(m, queuePath)
		return remadeQueue{q, func(data string) {
			if err := q.Put(t.Context(), []byte(data)); err != nil {
				t.Error("Put:", err)
			}
		}, func() string { return queuePath }, nil, nil}
	},
	"PriorityQueue": func(t *testing.T, srv *zksynctest.Server, m *session.Manager) remadeQueue {
		q := zksync.NewPriorityQueue(m, queuePath)
		put := func(priority int) func(data string) {
			return func(data string) {
				if err := q.Put(t.Context(), []byte(data), priority); err != nil {
					t.Error("Put:", err)
				}
			}
		}
		return remadeQueue{q, put(7), func() string { return queuePath + "/p-007" }, put(9), func() string { return queuePath + "/p-009" }}
	},
	"DelayQueue": func(t *testing.T, srv *zksynctest.Server, m *session.Manager) remadeQueue {
		q := zksync.NewDelayQueue(m, queuePath)
		put := func(due time.Time) func(data string) {
			return func(data string) {
				if err := q.PutAt(t.Context(), []byte(data), due); err != nil {
					t.Error("Put:", err)
				}
			}
		}
		now := time.Now()
		dirs := func() []string {
			names, _ := srv.Children(queuePath)
			slices.Sort(names)
			return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "t-") })
		}
		return remadeQueue{q, put(now.Add(time.Second)), func() string { return queuePath + "/" + dirs()[0] },
			put(now.Add(20 * time.Second)), func() string { return queuePath + "/" + dirs()[1] }}
	},
}

// removes matches the request that deletes a message.
func removes(op zkserver.Op) bool {
	return slices.ContainsFunc(op.Sub, func(sub zkserver.SubOp) bool {
		return sub.Code == zkserver.OpDelete && strings.Contains(sub.Path, "/qn-") && !strings.Contains(sub.Path, "zksync-")
	})
}

// The directory of a message is deleted and created again while the answer to the
// removal of the message is lost. A new message of the same name is delivered.
func TestMessageOfTheSameNameIsDelivered(t *testing.T) {
	for kind, open := range remadeQueues {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				producer, q := open(t, srv, srv.Connect(t)), open(t, srv, m)
				defer closeQueue(t, producer)
				producer.put("old")
				f := zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, At: zksynctest.AfterCommit, Match: removes, Do: zksynctest.Call(func() {
					removeTree(srv, producer.dir())
					producer.put("new")
					time.Sleep(time.Second) // so that the consumer lists it
				})}
				srv.Inject(f)
				f.Do = zksynctest.Disconnect
				srv.Inject(f)
				want(t, receive(t, q.Chan(), 2), []string{"old", "new"})
				closeQueue(t, q)
				if left := messagesIn(srv, queuePath); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		})
	}
}

// The directory of a message that was received is deleted and created again. Its Ack
// does not remove the new message of the same name (delivery.go: the check of mayBeRecreated),
// which is delivered.
func TestAckOfAMessageWhoseDirectoryWasRemade(t *testing.T) {
	for kind, open := range remadeQueues {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				producer, q := open(t, srv, srv.Connect(t)), open(t, srv, srv.Connect(t))
				defer closeQueue(t, producer)
				producer.put("old")
				old := next(t, q.Messages(), "old")
				removeTree(srv, producer.dir())
				if kind == "Queue" {
					time.Sleep(time.Second)
				}
				producer.put("new")
				synctest.Wait()
				if err := old.Ack(t.Context()); !errors.Is(err, zksync.ErrLost) {
					t.Errorf("Ack: %v, want ErrLost", err)
				}
				ack(t, next(t, q.Messages(), "new"))
				closeQueue(t, q)
				if left := messagesIn(srv, queuePath); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		})
	}
}

// The directory of a message is deleted and created again right behind the read of a Take, with a new message of the same
// name. The Take does not remove the new message for the old one. It is the first Take of its value: it creates its marker
// before the removal, so that the event of the deletion comes before the removal, too.
func TestTakeOfAMessageWhoseDirectoryWasRemadeSinceItsRead(t *testing.T) {
	for kind, open := range remadeQueues {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				producer, q := open(t, srv, srv.Connect(t)), open(t, srv, m)
				defer closeQueue(t, producer)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				mustTake := func(want string) {
					t.Helper()
					if data, err := q.Take(ctx); string(data) != want || err != nil {
						t.Errorf("Take: %q, %v; want %q", data, err, want)
					}
				}
				producer.put("old")
				made := srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Match: readsMessage, At: zksynctest.BeforeReply, Do: zksynctest.Call(func() {
					for _, path := range messagesIn(srv, queuePath) {
						srv.Delete(path)
					}
					if kind != "Queue" {
						removeTree(srv, producer.dir())
					}
					producer.put("1") // with the name of the old message, except in a Queue
					producer.put("2")
				})})
				mustTake("1")
				mustTake("2")
				if made.Count() == 0 {
					t.Error("the fault has not struck")
				}
				closeQueue(t, q)
				if left := messagesIn(srv, queuePath); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		})
	}
}

// The directory of a message is deleted and created again, with a new message of the same name, while the removal of a
// Take waits for the answer to another request. The Take does not remove the new message for the old one (take.remove:
// mayBeRecreated in Stale).
func TestTakeWaitsWhileItsDirectoryIsRemade(t *testing.T) {
	for _, kind := range []string{"PriorityQueue", "DelayQueue"} {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				link := srv.NewLink(t)
				m := link.Connect(t)
				producer, q := remadeQueues[kind](t, srv, srv.Connect(t)), remadeQueues[kind](t, srv, m)
				defer closeQueue(t, producer)
				defer closeQueue(t, q)
				producer.put("first")
				want(t, deliveries["Take"](t, q, 1), []string{"first"}) // creates the marker
				producer.put("a")
				producer.putLater("old")
				dir := producer.laterDir()
				time.Sleep(20 * time.Second) // until the messages of a DelayQueue are due
				link.Delay(time.Millisecond)
				reads := func(old bool) func(zksynctest.Op) bool {
					return func(op zksynctest.Op) bool {
						return readsMessage(op) && strings.HasPrefix(op.Sub[0].Path, dir+"/") == old
					}
				}
				// The second Take begins when the server has the read of the first one. The answer for the second one
				// comes when the removal of the first one is under way.
				id, began := live(t, m).ID(), make(chan struct{})
				srv.Inject(zksynctest.Fault{Session: id, Match: reads(false), Do: zksynctest.Call(func() { close(began) })})
				srv.Inject(zksynctest.Fault{Session: id, At: zksynctest.BeforeReply, Do: zksynctest.Call(func() { time.Sleep(10 * time.Millisecond) }), Match: reads(true)})
				// The event of the deletion comes before the answer to the removal, for which the second one waits.
				made := srv.Inject(zksynctest.Fault{Session: id, Match: removes, Do: zksynctest.Call(func() {
					time.Sleep(10 * time.Millisecond) // the second Take has its answer
					removeTree(srv, dir)
					producer.putLater("new")
					time.Sleep(10 * time.Millisecond)
				})})
				one := takeIn(t, q, time.Hour)
				<-began
				two := takeIn(t, q, time.Hour)
				want(t, []string{<-one, <-two}, []string{"a", "new"})
				if made.Count() == 0 {
					t.Error("the fault has not struck")
				}
				if left := messagesIn(srv, queuePath); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		})
	}
}

// readsMessage reports whether a request reads a message.
func readsMessage(op zksynctest.Op) bool {
	paths := []string{op.Path}
	for _, sub := range op.Sub {
		paths = append(paths, sub.Path)
	}
	return (op.Code == zkserver.OpGetData || op.Code == zkserver.OpMultiRead) &&
		slices.ContainsFunc(paths, func(path string) bool { return strings.Contains(path, "/qn-") })
}

// The request of a Take is lost before it is carried out, and until there is a
// connection again another consumer takes the message, its directory is deleted, and a
// new message of the same name comes. The Take does not remove the new message for the
// old one (commit: the fence in batch.send).
func TestTakeIsNotRepeatedForAMessageOfTheSameName(t *testing.T) {
	for kind, open := range remadeQueues {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				producer, q := open(t, srv, srv.Connect(t)), open(t, srv, m)
				defer closeQueue(t, producer)
				producer.put("old")
				f := zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, At: zksynctest.BeforeCommit, Match: removes, Do: zksynctest.Call(func() {
					for _, path := range messagesIn(srv, queuePath) {
						srv.Delete(path)
					}
					if kind != "Queue" {
						removeTree(srv, producer.dir())
					}
					producer.put("new")
				})}
				srv.Inject(f)
				f.Do = zksynctest.Disconnect
				srv.Inject(f)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if data, err := q.Take(ctx); string(data) != "new" || err != nil {
					t.Errorf("Take: %q, %v; want the new message", data, err)
				}
				closeQueue(t, q)
				if left := messagesIn(srv, queuePath); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		})
	}
}
