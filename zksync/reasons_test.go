package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// reasons has the log lines about waiting calls.
type reasons struct{ logs *observer.ObservedLogs }

// watched returns an option that keeps the log lines at WARN, with the bubble's time.
func watched() (session.Option, reasons) {
	core, logs := observer.New(zapcore.WarnLevel)
	return session.WithLogger(zap.New(core, zap.WithClock(bubbleClock{}))), reasons{logs}
}

type bubbleClock struct{}

func (bubbleClock) Now() time.Time                         { return time.Now() }
func (bubbleClock) NewTicker(d time.Duration) *time.Ticker { return time.NewTicker(d) }

// want checks that the first line came three seconds after start, that later ones came
// at growing intervals, and that the first line has the operation and says all parts.
func (r reasons) want(t *testing.T, start time.Time, op string, parts ...string) {
	t.Helper()
	var times []time.Duration
	var first string
	for _, e := range r.logs.FilterMessage("a call waited").All() {
		if e.ContextMap()["operation"] != op {
			continue
		}
		if times = append(times, e.Time.Sub(start)); first == "" {
			first = fmt.Sprint(e.ContextMap()["reason"])
		}
	}
	if len(times) < 2 || times[0] != 3*time.Second {
		t.Errorf("%s: lines after %v, want the first after 3s and more later", op, times)
	}
	for i := 2; i < len(times); i++ {
		if times[i]-times[i-1] < times[i-1]-times[i-2] {
			t.Errorf("%s: lines after %v, want growing intervals", op, times)
		}
	}
	for _, part := range parts {
		if !strings.Contains(first, part) {
			t.Errorf("%s: the reason is %q, want one that says %q", op, first, part)
		}
	}
}

// none checks that no call was logged as waiting.
func (r reasons) none(t *testing.T) {
	t.Helper()
	for _, e := range r.logs.FilterMessage("a call waited").All() {
		t.Errorf("a line that is not wanted: %v", e.ContextMap())
	}
}

// A Put that finds a bounded queue full logs how full it is after three seconds, in
// one line for all Puts of the value, and so says the error of each Put that gives up.
// Breaks if capacity.Admit starts no Wait, or if Committer.Cancelled does not ask the gate.
func TestAPutSaysThatTheQueueIsFull(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		opt, logs := watched()
		m := srv.Connect(t, opt)
		q := zksync.NewQueue(m, "/q", zksync.WithCapacity(2))
		defer closeQueue(t, q)
		if err := q.PutAll(t.Context(), []byte("a"), []byte("b")); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		errs := make(chan error, 3)
		for range 2 {
			go func() { errs <- q.Put(within(t, 20*time.Second), []byte("c")) }()
		}
		go func() { errs <- q.PutAll(within(t, 20*time.Second), []byte("d")) }()
		for range cap(errs) {
			explained(t, <-errs, "/q: ", "waiting for room: the queue has 2 messages, WithCapacity allows 2")
		}
		logs.want(t, start, "put", "the queue has 2 messages")
		if n := logs.logs.Len(); n > 4 {
			t.Errorf("%d lines, want one for all Puts at a time", n)
		}
		synctest.Wait()
		if waits := m.Stats().Waits; len(waits) != 0 {
			t.Errorf("waits %v, want none: nobody waits any more", waits)
		}

		bounded := zksync.NewQueue(m, "/q", zksync.WithCapacity(2), zksync.WithMaxWait(time.Second))
		defer closeQueue(t, bounded)
		explained(t, bounded.Put(t.Context(), nil), "waiting for room", zksync.ErrMaxWait.Error())
	})
}

// A Take whose ctx ends says whether the queue was empty, consumers had claimed its
// messages, or no message was due; none of these is logged, however long the Take
// waits, but Stats shows the wait. Breaks if take.run returns the error of next as it
// is, or if take.startWait calls StartWait.
func TestATakeSaysWhyThereIsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		opt, logs := watched()
		m := srv.Connect(t, opt)
		q := zksync.NewQueue(m, "/q")
		defer closeQueue(t, q)
		failed := background(within(t, time.Hour), func(ctx context.Context) error {
			_, err := q.Take(ctx)
			return err
		})
		time.Sleep(time.Minute)
		if waits := m.Stats().Waits; len(waits) != 1 || waits[0].Op != "take" || waits[0].Path != "/q" {
			t.Errorf("waits %v, want that of Take", waits)
		}
		// The wait goes on under the next session.
		srv.ExpireSession(live(t, m).ID())
		explained(t, <-failed, "take /q: waiting for 1h0m0s for a message: the queue is empty")
		if waits := m.Stats().Waits; len(waits) != 0 {
			t.Errorf("waits %v, want none", waits)
		}

		other := zksync.NewQueue(srv.Connect(t), "/q")
		defer closeQueue(t, other)
		if err := other.PutAll(t.Context(), []byte("a"), []byte("b")); err != nil {
			t.Fatal(err)
		}
		<-other.Messages()
		synctest.Wait()
		_, err := q.Take(within(t, time.Minute))
		explained(t, err, "consumers have claimed all that wait, 2 of them others and 0 this one")

		delayed := zksync.NewDelayQueue(m, "/d")
		defer closeQueue(t, delayed)
		if err := delayed.Put(t.Context(), []byte("later"), time.Hour); err != nil {
			t.Fatal(err)
		}
		_, err = delayed.Take(within(t, time.Minute))
		explained(t, err, "for a message to become due, the first not before ")
		logs.none(t)
	})
}

// Participants that wait in Enter and in Leave log the participants that are present
// after three seconds, and the error of a wait whose ctx ends says the same, also for
// a participant that came too late for a round. Breaks if barrierView.awaitChange starts no
// Wait, or if rest or apart returns session.Cancelled.
func TestADoubleBarrierSaysWhoIsThere(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		opt, logs := watched()
		m := srv.Connect(t, opt)
		b := zksync.NewDoubleBarrier(m, "/b", 3, zksync.WithID("node-1"))
		start := time.Now()
		await, giveUp := context.WithCancel(t.Context())
		second := zksync.NewDoubleBarrier(srv.Connect(t), "/b", 3, zksync.WithID("node-2"))
		other := background(await, second.Enter)
		synctest.Wait()
		err := b.Enter(within(t, 20*time.Second))
		explained(t, err, "enter /b: ", "for 1 more of 3 to enter, beside node-1 (this process), node-2 (session 0x")
		logs.want(t, start, "enter", "for 1 more of 3 to enter, beside node-1 (this process), node-2 (session 0x")
		var count *zksync.CountError
		if !errors.As(err, &count) || count.There != 2 || count.Size != 3 {
			t.Errorf("error %v, want a CountError of 2 of 3", err)
		}
		giveUp()
		<-other

		third := zksync.NewDoubleBarrier(srv.Connect(t), "/b", 3, zksync.WithID("node-3"))
		entered := []<-chan error{background(t.Context(), b.Enter), background(t.Context(), second.Enter), background(t.Context(), third.Enter)}
		for _, done := range entered {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		late := zksync.NewDoubleBarrier(m, "/b", 3, zksync.WithID("late"))
		explained(t, late.Enter(within(t, 5*time.Second)), "for the end of a round that began without this participant: 3 are still inside, node-1 (this process), node-2 (")
		start = time.Now()
		err = b.Leave(within(t, 20*time.Second))
		explained(t, err, "leave /b: ", "for the others to leave: 2 are still inside, node-2 (session 0x", "node-3")
		logs.want(t, start, "leave", "2 are still inside")
		done := background(t.Context(), second.Leave)
		if err := errors.Join(third.Leave(t.Context()), <-done); err != nil {
			t.Error(err)
		}
		if waits := m.Stats().Waits; len(waits) != 0 {
			t.Errorf("waits %v, want none", waits)
		}
	})
}

// A Join that waits for its id logs whose znode is in the way after three seconds, and
// so says its error. Breaks if Ephemeral.claim starts no Wait, or if Group.join returns
// session.Cancelled.
func TestAJoinSaysWhoHasTheID(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		opt, logs := watched()
		m, other := srv.Connect(t, opt), srv.Connect(t)
		member, err := zksync.NewGroup(other, "/g").Join(t.Context(), "node-1", nil)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		owner := fmt.Sprintf("an ephemeral of session %#x", uint64(live(t, other).ID()))
		_, err = zksync.NewGroup(m, "/g", zksync.WithIDWait()).Join(within(t, 20*time.Second), "node-1", nil)
		explained(t, err, "join /g/node-1: ", "waiting for the id to be free", owner)
		logs.want(t, start, "ephemeral", "for the removal of another znode at the path", owner)
		if err := member.Leave(); err != nil {
			t.Error(err)
		}
	})
}

// A call of a queue or a barrier that its ctx ends during an outage names the servers
// that could not be used, and a wait that began before names both reasons. Breaks if
// Manager.Cancelled or Wait.reasonNow does not look at the state.
func TestWaitsNameAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t, session.WithTimeout(time.Minute))
		q := zksync.NewQueue(m, "/q")
		gate := zksync.NewBarrier(m, "/gate")
		if err := errors.Join(q.Put(t.Context(), nil), gate.Set(t.Context())); err != nil {
			t.Fatal(err)
		}
		ctx := within(t, 20*time.Second)
		taken := zksync.NewQueue(m, "/empty")
		waiting := []<-chan error{background(ctx, gate.Wait), background(ctx, func(ctx context.Context) error {
			_, err := taken.Take(ctx)
			return err
		})}
		synctest.Wait()
		srv.Stop()
		synctest.Wait()
		explained(t, q.Put(ctx, nil), "put /q: ", "no server could be used for 20s", "127.0.0.1:")
		for _, done := range waiting {
			explained(t, <-done, "waiting for 20s for ", "; also no server could be used for 20s")
		}
		srv.Start()
		live(t, m)
		closeQueue(t, q)
		closeQueue(t, taken)
	})
}

// The observer is told how long a queue is wherever its messages are listed anyway, and
// of each message that a consumer receives. Breaks if view.listMessages, capacity.count or
// Peek does not report, or if stream.handOver does not.
func TestTheObserverOfAQueue(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		lengths, deliveries := make(chan session.QueueLength, 100), make(chan session.Delivered, 100)
		m := srv.Connect(t, session.WithObserver(session.Observer{
			QueueLength: func(l session.QueueLength) { lengths <- l },
			Delivered:   func(d session.Delivered) { deliveries <- d },
		}))
		wantLength := func(n int, by string) {
			t.Helper()
			synctest.Wait()
			if len(lengths) == 0 {
				t.Errorf("no length was reported by %s", by)
				return
			}
			if l := <-lengths; l != (session.QueueLength{Path: "/q", Length: n}) {
				t.Errorf("length %v by %s, want %d", l, by, n)
			}
			for len(lengths) > 0 {
				<-lengths
			}
		}
		q := zksync.NewQueue(m, "/q", zksync.WithCapacity(3))
		if err := q.PutAll(t.Context(), []byte("a"), []byte("bb"), []byte("ccc")); err != nil {
			t.Fatal(err)
		}
		for len(lengths) > 0 {
			<-lengths
		}
		_ = q.Put(within(t, time.Second), nil)
		wantLength(3, "a Put without room")
		if _, ok, err := q.Peek(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		wantLength(3, "Peek")
		if n, err := q.Len(t.Context()); n != 3 || err != nil {
			t.Fatal(n, err)
		}
		wantLength(3, "Len")
		before := len(requests(srv, live(t, m).ID()))
		other := zksync.NewQueue(m, "/q")
		receive(t, other.Chan(), 1)
		if d := <-deliveries; d != (session.Delivered{Path: "/q", Size: 1}) {
			t.Errorf("delivery %v, want one of 1 byte", d)
		}
		wantLength(3, "a consumer")
		if after := len(requests(srv, live(t, m).ID())); after == before {
			t.Error("a consumer has made no request")
		}
		closeQueue(t, other)
		third := zksync.NewQueue(m, "/q")
		if err := (<-third.Messages()).Ack(t.Context()); err != nil {
			t.Error(err)
		}
		if d := <-deliveries; d != (session.Delivered{Path: "/q", Size: 2}) {
			t.Errorf("delivery %v, want one of 2 bytes", d)
		}
		closeQueue(t, third)
		closeQueue(t, q)
	})
}

// A consumer whose claims do not fit into a request because of the claims that there are logs what it waits for. It goes
// on when messages are settled.
func TestAConsumerSaysThatItsClaimsDoNotFit(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const n = 60
		producer := zksync.NewDelayQueue(srv.Connect(t), queuePath)
		defer closeQueue(t, producer)
		for i := range n {
			must(t, producer.Put(t.Context(), fmt.Append(nil, i), 0))
			time.Sleep(2 * time.Millisecond)
		}
		log, lines := watched()
		q := zksync.NewDelayQueue(srv.Connect(t, log, session.WithMaxRequest(1024)), queuePath)
		var all []*zksync.Message
		receive := func() {
			for {
				select {
				case msg := <-q.Messages():
					all = append(all, msg)
				case <-time.After(time.Minute):
					return
				}
			}
		}
		start := time.Now()
		receive()
		if len(all) == 0 || len(all) == n {
			t.Errorf("%d messages were received, want some of %d", len(all), n)
		}
		lines.want(t, start, "claim", "waiting for room", "request too large")
		lines.logs.TakeAll()
		for len(all) > 0 {
			ack(t, all[0])
			if all = all[1:]; len(all) == 0 {
				receive()
			}
		}
		if left := messagesIn(srv, queuePath); len(left) > 0 {
			t.Errorf("%d messages are left", len(left))
		}
		lines.logs.TakeAll()
		time.Sleep(time.Hour)
		lines.none(t)
		closeQueue(t, q)
	})
}
