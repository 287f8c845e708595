package zksync_test

import (
	"context"
	"errors"
	"fmt"
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

// slowWatches has a session's watch events come late.
func slowWatches(t testing.TB, srv *zksynctest.Server, m *session.Manager) {
	t.Helper()
	srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), At: zksynctest.OnWatch, Do: zksynctest.Delay(time.Second), Times: -1})
}

// TryTake finds a message that was given back before the call, even if its list shows all messages as claimed and no
// watch has fired yet.
func TestTryTakeWithAStaleList(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q, other := zksync.NewQueue(m, queuePath), zksync.NewQueue(srv.Connect(t), queuePath, zksync.WithPrefetch(1))
		offer(t, srv.Connect(t), queuePath, 0, 2)
		items, _ := leftItems(srv, queuePath)
		next(t, other.Messages(), "0")
		// A Take has found out about the claim, and is at work on the next message.
		srv.Inject(zksynctest.Fault{Op: zkserver.OpGetData, Path: queuePath + "/" + items[1], At: zksynctest.BeforeReply, Do: zksynctest.Delay(time.Second)})
		taken := make(chan string, 1)
		go func() {
			data, err := q.Take(t.Context())
			taken <- fmt.Sprint(string(data), err)
		}()
		synctest.Wait()
		slowWatches(t, srv, m)
		closeQueue(t, other)
		data, ok, err := q.TryTake(t.Context())
		if !ok || err != nil {
			t.Errorf("TryTake: %q, %v, %v, want a message", data, ok, err)
		}
		// The Take begins again, because the claims have changed. It is as early as TryTake.
		if got := []string{string(data) + "<nil>", <-taken}; !slices.Equal(slices.Sorted(slices.Values(got)), []string{"0<nil>", "1<nil>"}) {
			t.Errorf("TryTake and Take: %q, want each message once", got)
		}
		closeQueue(t, q)
	})
}

// TryTake of a DelayQueue does not rely on a list of messages that are not due yet.
func TestTryTakeWithDelayedMessages(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q, producer := zksync.NewDelayQueue(m, queuePath), zksync.NewDelayQueue(srv.Connect(t), queuePath)
		if err := producer.Put(t.Context(), []byte("later"), 5*time.Second); err != nil {
			t.Fatal(err)
		}
		if data, ok, err := q.TryTake(t.Context()); ok || err != nil {
			t.Fatalf("TryTake: %q, %v, %v", data, ok, err)
		}
		slowWatches(t, srv, m)
		if err := producer.Put(t.Context(), []byte("now"), 0); err != nil {
			t.Fatal(err)
		}
		if data, ok, err := q.TryTake(t.Context()); !ok || string(data) != "now" {
			t.Errorf("TryTake: %q, %v, %v; want now", data, ok, err)
		}
		closeQueue(t, q)
		closeQueue(t, producer)
	})
}

// A TryTake that is given up while it lists the queue delays no waiter of the same value.
func TestTryTakeGivenUpBesideWaiters(t *testing.T) {
	for name, wait := range map[string]func(q *zksync.PriorityQueue) string{
		"Take": func(q *zksync.PriorityQueue) string {
			data, err := q.Take(context.Background())
			return fmt.Sprint(string(data), err)
		},
		"Chan": func(q *zksync.PriorityQueue) string { return fmt.Sprint(string(<-q.Chan()), error(nil)) },
	} {
		for _, given := range []string{queuePath, queuePath + "/p-000", queuePath + "/p-007"} {
			t.Run(name+given, func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					m := srv.Connect(t)
					q, producer := zksync.NewPriorityQueue(m, queuePath), zksync.NewPriorityQueue(srv.Connect(t), queuePath)
					for _, priority := range []int{0, 7} {
						if err := producer.Put(t.Context(), nil, priority); err != nil {
							t.Fatal(err)
						}
						if _, err := producer.Take(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					got := make(chan string, 1)
					go func() { got <- wait(q) }()
					synctest.Wait()
					listing := srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Path: given, At: zksynctest.BeforeReply, Do: zksynctest.Delay(time.Second),
						Match: func(op zkserver.Op) bool { return op.Code != zkserver.OpSync }})
					ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
					defer cancel()
					if _, _, err := q.TryTake(ctx); err == nil || listing.Count() == 0 {
						t.Fatalf("TryTake: %v, and %d listings were delayed", err, listing.Count())
					}
					for _, priority := range []int{7, 0} {
						if err := producer.Put(t.Context(), []byte("next"), priority); err != nil {
							t.Fatal(err)
						}
					}
					select {
					case got := <-got:
						if got != "next<nil>" {
							t.Errorf("got %s", got)
						}
					case <-time.After(time.Minute):
						t.Error("who waited for a message did not get one")
					}
					q.Close()
					producer.Close()
				})
			})
		}
	}
}

// Take delivers no message that Chan of the same value has delivered and whose removal was lost with the session.
func TestTakeOfWhatChanHasDelivered(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath, zksync.WithPrefetch(1))
		offer(t, srv.Connect(t), queuePath, 0, 3)
		lost := live(t, m)
		ch := q.Chan()
		synctest.Wait()
		srv.Inject(zksynctest.Fault{Session: lost.ID(), Op: zkserver.OpMulti, Times: -1, Do: zksynctest.Drop})
		got := receive(t, ch, 1)
		synctest.Wait()
		srv.ExpireSession(lost.ID())
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			data, err := q.Take(ctx)
			cancel()
			if err != nil {
				break // the channel has the last one
			}
			got = append(got, string(data))
		}
		if len(got) < 3 {
			got = append(got, receive(t, ch, 1)...)
		}
		slices.Sort(got)
		want(t, got, numbers(0, 3))
		time.Sleep(time.Minute) // Chan removes the message of the lost session
		closeQueue(t, q)
		wantLeft(t, srv, 0, 0)
	})
}

// A message that is given back while another consumer claims later messages comes ahead of them.
func TestGivenBackWhileLookedFor(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		holder := newQueue(t, srv, zksync.WithPrefetch(1))
		offer(t, srv.Connect(t), queuePath, 0, 6)
		<-holder.Messages()
		synctest.Wait()
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		claims := func(op zksynctest.Op) bool {
			return len(op.Sub) > 1 && strings.Contains(op.Sub[0].Path, "/zksync-claims/ledger-")
		}
		closed := make(chan struct{})
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, Match: claims, Do: zksynctest.Call(func() {
			go func() {
				defer close(closed)
				closeQueue(t, holder)
			}()
			time.Sleep(time.Second)
		})})
		want(t, receive(t, q.Chan(), 6), numbers(0, 6))
		<-closed // the first claim was refused
		closeQueue(t, q)
		wantLeft(t, srv, 0, 0)
	})
}

// A message is taken once, even if any request of Take or its answer is lost.
func TestTakeOverLostAnswers(t *testing.T) {
	for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply} {
		for nth := range 24 {
			expired := nth%2 == 1
			t.Run(fmt.Sprint(at, nth/2+1, expired), func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					offer(t, srv.Connect(t), queuePath, 0, 3)
					m := srv.Connect(t)
					q := zksync.NewQueue(m, queuePath)
					id := live(t, m).ID()
					do := zksynctest.Disconnect
					if expired {
						do = zksynctest.Call(func() { go srv.ExpireSession(id) })
						srv.Inject(zksynctest.Fault{Session: id, Nth: nth/2 + 1, At: at, Do: zksynctest.Drop})
					}
					srv.Inject(zksynctest.Fault{Session: id, Nth: nth/2 + 1, At: at, Do: do})
					for i := range 3 {
						takes(t, q, fmt.Sprint(i))
					}
					if data, ok, err := q.TryTake(t.Context()); ok || err != nil {
						t.Errorf("TryTake: %q, %v, %v", data, ok, err)
					}
					closeQueue(t, q)
					wantLeft(t, srv, 0, 0)
				})
			})
		}
	}
}

// However ctx ends, no message is lost: Take has the message, or the queue has the message in its position, or Take
// returns the data with ErrOutcomeUnknown (take.go: the return of data after followRemoval).
func TestTakeCancelled(t *testing.T) {
	for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply} {
		for _, do := range []zksynctest.Action{zksynctest.Delay(2 * time.Second), zksynctest.Drop, zksynctest.Disconnect} {
			for nth := 1; nth <= 8; nth++ {
				t.Run(fmt.Sprint(at, do, nth), func(t *testing.T) {
					bubble(t, func(t *testing.T, srv *zksynctest.Server) {
						offer(t, srv.Connect(t), queuePath, 0, 2)
						m := srv.Connect(t)
						q := zksync.NewQueue(m, queuePath)
						srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Nth: nth, At: at, Do: do})
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						defer cancel()
						began := time.Now()
						data, err := q.Take(ctx)
						if took := time.Since(began); took > time.Second {
							t.Errorf("Take has returned %v after its ctx had ended", took-time.Second)
						}
						if nth%2 == 0 {
							closeQueue(t, q)
						} else {
							defer closeQueue(t, q)
							time.Sleep(time.Minute)
						}
						from := 0
						unknown := errors.Is(err, zksync.ErrOutcomeUnknown)
						if (err == nil || unknown) != (string(data) == "0") {
							t.Errorf("took %q, %v", data, err)
						}
						if err != nil && !errors.Is(err, context.DeadlineExceeded) {
							t.Error("Take:", err)
						}
						if items, _ := leftItems(srv, queuePath); err == nil || unknown && len(items) == 1 {
							from = 1
						}
						other := zksync.NewQueue(srv.Connect(t), queuePath)
						for i := from; i < 2; i++ {
							takes(t, other, fmt.Sprint(i))
						}
						closeQueue(t, other)
						wantLeft(t, srv, 0, 0)
					})
				})
			}
		}
	}
}

// A Take whose removal, and the first requests for its outcome, are answered with internal errors finds out whether the
// message is still there, and takes it then (take.outcome: maxLooks).
func TestTakeOverInternalErrors(t *testing.T) {
	for _, at := range allMoments {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				q := zksync.NewQueue(m, queuePath)
				defer closeQueue(t, q)
				offer(t, srv.Connect(t), queuePath, 0, 3)
				takes(t, q, "0")
				f := zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, Match: removes, At: at, Do: zksynctest.Error(zkserver.ErrSystem)}
				srv.Inject(f)
				f.Op, f.Match = zkserver.OpSetData, nil // the fence
				srv.Inject(f)
				f.Op, f.Times = zkserver.OpGetData, 2 // the looks
				f.Match = func(op zksynctest.Op) bool { return strings.Contains(op.Path, "/qn-") }
				f.Nth = 2 // the first one reads the message
				looks := srv.Inject(f)
				data, err := q.Take(t.Context())
				// If the message is gone, another client may have removed it.
				if unknown := at != zksynctest.BeforeCommit; string(data) != "1" || errors.Is(err, zksync.ErrOutcomeUnknown) != unknown || !unknown && err != nil {
					t.Errorf("Take: %q, %v", data, err)
				}
				if looks.Count() != 2 {
					t.Errorf("%d looks have failed", looks.Count())
				}
				takes(t, q, "2")
			})
		})
	}
}
