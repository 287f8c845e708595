package queue

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A claim goes into the transaction that removes earlier messages, and takes the room that these removals make: the
// ledger never has more names than the limit, and one transaction serves 40 messages and more.
func TestClaimsGoWithRemovals(t *testing.T) {
	inBubble(t, func(h harness) {
		const n, prefetch = 4000, 128
		h.put(0, n)
		m := h.srv.Connect(h)
		s, err := m.Session(h.Context())
		h.must(err)
		h.srv.Inject(zksynctest.Fault{Session: s.ID(), Op: zkserver.OpMulti, Times: -1, Do: zksynctest.Delay(time.Millisecond)})
		c := h.consumer(m, prefetch, InOrder)
		received, most := make(chan struct{}), 0
		go c.Deliver(true, func(context.Context, *Delivery) bool {
			c.mu.Lock()
			path := c.ledger.path
			c.mu.Unlock()
			data, _ := h.srv.Get(path)
			names, err := LedgerNames(data)
			if most = max(most, len(names)); err != nil {
				h.Error(err)
			}
			received <- struct{}{}
			return true
		})
		for range n {
			<-received
		}
		h.close(c)
		h.wantLeft(0, 0)
		transactions := 0
		for _, op := range h.srv.Ops() {
			if op.Code == zkserver.OpMulti && strings.Contains(op.Sub[0].Path, ledgerPrefix) {
				transactions++
			}
		}
		if most > prefetch {
			h.Errorf("the ledger had %d names, want at most %d", most, prefetch)
		}
		if most := n / 70; transactions > most {
			h.Errorf("%d transactions for %d messages, want at most %d", transactions, n, most)
		}
	})
}

// A window stays small while messages that were read are on their way to the receiver, and grows when the receiver
// waits for a claim.
func TestWindowGrowsForAReceiverThatWaits(t *testing.T) {
	w := prefetchWindow{limit: 128}
	w.reset()
	w.claimed(firstPrefetch, true)
	all := make([]*Delivery, firstPrefetch)
	for i := range all {
		all[i] = &Delivery{}
	}
	w.noteRead(all, firstPrefetch)
	for i, d := range all {
		w.received(d, 0)
		w.starve(true)
		w.room(0)
		if grown := w.size > firstPrefetch; grown != (i == firstPrefetch-1) {
			t.Errorf("after %d of %d messages the window has room for %d", i+1, firstPrefetch, w.size)
		}
	}
}

// A claim takes no room that a later transaction makes.
func TestLaterRemovalsMakeNoRoom(t *testing.T) {
	withRig(t, 200, func(r rig) {
		c := r.open(InOrder, true)
		p := &stream{c: c.Consumer}
		c.window.limit, c.window.size = 128, 128
		all := c.receive(128)
		var room int
		_, err := c.ledger.claim(func(_ *orderState, removals int) selection {
			for _, d := range all[:64] {
				go d.Ack(r.Context())
			}
			synctest.Wait()
			room = p.roomIn(c.v, removals)
			return selection{}
		}, nil, &idleLine{v: c.v})
		if err != errNothingFree || room != 0 {
			r.Errorf("room for %d messages beside 128 in the ledger, and %v", room, err)
		}
		synctest.Wait()
		if room := p.roomIn(c.v, 0); room != 64 {
			r.Errorf("room for %d messages after 64 removals, want 64", room)
		}
	})
}

// A claim that takes the room of removals comes after them, also if all of them do not fit into one request.
func TestClaimAfterRemovalsThatDoNotFit(t *testing.T) {
	withRig(t, 300, func(r rig) {
		c := r.open(InOrder, true, session.WithMaxRequest(3000))
		p := &stream{c: c.Consumer}
		c.window.limit, c.window.size = 128, 128
		claim := newChange()
		claim.pick = func(st *orderState, removals int) selection {
			sel, _ := c.v.partitions.pick(func(int, int) int { return p.roomIn(c.v, removals) }, st)
			c.v.claims.hold(len(sel.refs), c.ledger.path, nil)
			return sel
		}
		batch := []*change{claim}
		for _, d := range c.receive(128)[1:] {
			removal := newDrop(d.ref)
			removal.ops, removal.endRemoval = []any{&zk.DeleteRequest{Path: d.ID, Version: -1}}, c.v.claims.endRemoval
			batch = append(batch, removal)
		}
		most, last := 0, 0
		r.srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Times: -1, At: zksynctest.AfterCommit, Do: zksynctest.Call(func() {
			data, _ := r.srv.Get(c.ledger.path)
			names := make(claimSet)
			r.must(names.decode(data))
			most, last = max(most, len(names)), len(names)
		})})
		for range batch[1:] {
			c.v.claims.beginRemoval()
		}
		c.ledger.start(batch...)
		for _, change := range batch {
			<-change.done
			r.must(change.err)
		}
		if most != 128 || last != 128 {
			r.Errorf("%d messages at most in the ledger, and %d at the end, want 128 and 128", most, last)
		}
	})
}

// A claim takes no room of removals that the server refuses, also if all of them do not fit into one request.
func TestRefusedRemovalsMakeNoRoom(t *testing.T) {
	for name, opts := range map[string][]session.Option{"one request": nil, "many requests": {session.WithMaxRequest(1024)}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(h harness) {
				const prefetch = 22
				h.put(0, 4*prefetch)
				m := h.srv.Connect(h, opts...)
				s, err := m.Session(h.Context())
				h.must(err)
				h.srv.Inject(zksynctest.Fault{Session: s.ID(), Times: -1, Do: zksynctest.Delay(time.Millisecond)})
				c := h.consumer(m, prefetch, InOrder)
				ch := h.messages(c)
				var all []*Delivery
				for i := range prefetch {
					all = append(all, h.next(ch, fmt.Sprint(i), 1))
					h.must(h.srv.Create(all[i].ID+"/child", nil))
				}
				most := 0
				h.srv.Inject(zksynctest.Fault{Session: s.ID(), Op: zkserver.OpMulti, Times: -1, At: zksynctest.AfterCommit, Do: zksynctest.Call(func() {
					data, _ := h.srv.Get(c.ledger.path)
					names, err := LedgerNames(data)
					h.must(err)
					most = max(most, len(names))
				})})
				for _, d := range all {
					go d.Ack(h.Context())
				}
				h.next(ch, fmt.Sprint(prefetch), 1)
				if most > prefetch {
					h.Errorf("%d messages at most in the ledger, want at most %d", most, prefetch)
				}
				h.close(c)
			})
		})
	}
}

// Messages that wait for room in the target of MoveTo count for the limit of the messages that are not settled.
func TestMoveToThatWaitsMakesNoRoom(t *testing.T) {
	inBubble(t, func(h harness) {
		const prefetch = 8
		h.put(0, 100)
		m := h.srv.Connect(h)
		s, err := m.Session(h.Context())
		h.must(err)
		h.srv.Inject(zksynctest.Fault{Session: s.ID(), Times: -1, Do: zksynctest.Delay(time.Millisecond)})
		c := h.consumer(m, prefetch, InOrder)
		ch := h.messages(c)
		makeDir := func(ctx context.Context, s *session.Session, path string) error { return s.MakeDir(ctx, path) }
		unsettled := 0
		start, done := make(chan struct{}), make(chan error, prefetch)
		for i := range prefetch {
			d := h.next(ch, fmt.Sprint(i), 1)
			unsettled++
			gate := &commit.Capacity{Max: 1, Dir: "/dead", Path: "/dead-limit", MakeDir: makeDir, OnCount: func(int) {}, NumberOf: func(name string) (int32, bool) {
				it, ok := parseItem(name)
				return it.Seq, ok
			}}
			go func() {
				<-start
				done <- d.MoveTo(h.Context(), Target{Dir: "/dead", Prefix: ItemPrefix, MakeDir: makeDir, Gate: gate, Turn: make(chan struct{}, 1), Life: h.Context()})
			}()
		}
		close(start)
		h.must(<-done) // one message has room, and the others wait for it
		unsettled--
		for more := true; more; {
			select {
			case <-ch:
				unsettled++
			case <-time.After(time.Minute):
				more = false
			}
		}
		if unsettled > prefetch {
			h.Errorf("%d messages are received and not settled, want at most %d", unsettled, prefetch)
		}
		h.close(c)
		for range prefetch - 1 {
			<-done
		}
	})
}

// The messages of one claim are read before it is known how large they are, and not those of several claims.
func TestReadsBehindSeveralClaims(t *testing.T) {
	withRig(t, 300, func(r rig) {
		c := r.open(InOrder, true)
		c.cfg.Prefetch = 1000
		p := &stream{c: c.Consumer}
		c.window.limit, c.window.size = 1000, 1000
		reader := &messageReader{v: c.v}
		reader.largest.Store(1)
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		claims := make(chan claim, 1000)
		go p.claim(ctx, c.ledger, reader, claims)
		synctest.Wait()
		if read := messagesRead(r.srv); len(claims) < 2 || read > maxClaims {
			r.Errorf("%d messages were read behind %d claims, want at most %d", read, len(claims), maxClaims)
		}
	})
}

// messagesRead returns how many messages were read in requests for several.
func messagesRead(srv *zksynctest.Server) (n int) {
	for _, op := range srv.Ops() {
		if op.Code == zkserver.OpMultiRead {
			for _, sub := range op.Sub {
				if strings.Contains(sub.Path, ItemPrefix) {
					n++
				}
			}
		}
	}
	return n
}

// Large messages behind small ones are read as far as they fit into the memory that the limit allows, even if all of
// them are claimed.
func TestMemoryOfClaimedMessages(t *testing.T) {
	// Acks that are made together make room for many claims at once.
	for _, together := range []int{0, 300} {
		t.Run(fmt.Sprint(together), func(t *testing.T) { claimLargeMessages(t, together) })
	}
}

// claimLargeMessages acknowledges some of the small messages together, when all of them were received.
func claimLargeMessages(t *testing.T, together int) {
	inBubble(t, func(h harness) {
		const small, large, size = 600, 300, 512 << 10
		h.put(0, small)
		m := h.srv.Connect(h)
		s, err := m.Session(h.Context())
		h.must(err)
		for range large {
			_, err := s.Create(h.Context(), testQueue+"/"+ItemPrefix, make([]byte, size), zk.FlagSequence)
			h.must(err)
		}
		c := h.consumer(h.srv.Connect(h), large, InOrder)
		ch := h.messages(c)
		all := make(chan struct{})
		for i := range small {
			d := h.next(ch, fmt.Sprint(i), 1)
			go func() {
				if i >= small-together {
					<-all
				}
				d.Ack(h.Context())
			}()
		}
		synctest.Wait()
		close(all)
		synctest.Wait()
		read := messagesRead(h.srv)
		// One read of several requests was sent before the sizes were known.
		if most := prefetchBytes/size + maxReadRequests*maxReadsAtOnce; read-small > most {
			h.Errorf("%d of the large messages were read, want at most %d", read-small, most)
		}
		h.close(c)
		h.wantLeft(large, 0)
	})
}

// A receiver that stops behind a few large messages has no more data waiting than the limit and one read: the rest of
// a claim is read when there is room.
func TestMemoryAheadOfAReceiver(t *testing.T) {
	inBubble(t, func(h harness) {
		const n, size, taken = 200, 512 << 10, 2 * firstPrefetch
		s, err := h.srv.Connect(h).Session(h.Context())
		h.must(err)
		h.must(h.srv.Create(testQueue, nil))
		for range n {
			_, err := s.Create(h.Context(), testQueue+"/"+ItemPrefix, make([]byte, size), zk.FlagSequence)
			h.must(err)
		}
		c := h.consumer(h.srv.Connect(h), n, InOrder)
		ch := h.messages(c)
		for range taken {
			<-ch
		}
		synctest.Wait()
		if read, most := messagesRead(h.srv), taken+(prefetchBytes+readBudget)/size; read > most {
			h.Errorf("%d messages of %d bytes were read, %d of them received, want at most %d", read, size, taken, most)
		}
		h.close(c)
	})
}

// A consumer goes on with smaller claims if a full claim does not fit into a request.
func TestClaimsThatDoNotFit(t *testing.T) {
	inBubble(t, func(h harness) {
		const n = 400
		// The names of a DelayQueue share no prefix, so that each takes its full length.
		due := time.Now().UnixMilli() - n
		dir := testQueue + "/" + DelayPartition(due)
		h.must(h.srv.Create(testQueue, nil))
		h.must(h.srv.Create(dir, nil))
		for i := range n {
			h.must(h.srv.Create(fmt.Sprintf("%s/%s%010d", dir, DelayedPrefix(due+int64(i)), 2*i), nil))
		}
		c := h.consumer(h.srv.Connect(h, session.WithMaxRequest(2048)), 128, ByTime)
		received := h.acknowledged(c)
		for i := range n {
			select {
			case <-received:
			case <-time.After(time.Hour):
				h.Fatalf("no further message after %d of %d", i, n)
			}
		}
		h.close(c)
	})
}
