package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// putApart creates messages whose numbers are not consecutive, so that the claim table has each name by itself.
func (r rig) putApart(n int) {
	for i := range n {
		r.put(1_000_000_000 + 2*i)
	}
}

// Messages of dead consumers whose names do not fit into one claim table come one part after the other, each of them
// once, and those of a living consumer do not come.
func TestRecoveryOfMoreThanFits(t *testing.T) {
	for _, limit := range []int{1024, 2048} {
		withRig(t, 0, func(r rig) {
			const n = 300
			r.putApart(n)
			dead, living := r.open(InOrder, true), r.open(InOrder, true)
			dead.receive(n / 2)
			living.forgetOrder()
			kept := living.receive(10)
			dead.forgetOrder()
			dead.receive(n)
			a := r.open(InOrder, true, session.WithMaxRequest(limit))
			dead.die()
			got := make(map[string]bool)
			all := receiveAll(a, false, nil)
			for range n - len(kept) {
				select {
				case d := <-all:
					if got[d.ID] || d.Attempts != 2 || slices.ContainsFunc(kept, func(k *Delivery) bool { return k.ID == d.ID }) {
						r.Fatalf("%s came, attempt %d, again: %v", d.ID, d.Attempts, got[d.ID])
					}
					got[d.ID] = true
					r.must(d.Ack(r.Context()))
				case <-time.After(time.Hour):
					r.Fatalf("no message after %d", len(got))
				}
			}
			time.Sleep(time.Minute)
			if st := a.state(); len(all) > 0 || st.needsRecovery() {
				r.Errorf("%d messages are left, and the table counts %d of %d deaths", len(all), st.table.recovered, st.removed)
			}
		})
	}
}

// No message is claimed as long as a new claim table has no room for the claims of the living.
func TestClaimsOfTheLivingThatDoNotFit(t *testing.T) {
	withRig(t, 0, func(r rig) {
		const n = 200
		r.putApart(n)
		living := r.open(InOrder, true)
		kept := living.receive(n)
		a := r.open(InOrder, true, session.WithMaxRequest(1024))
		r.must(r.srv.Delete(living.state().path))
		all := receiveAll(a, false, nil)
		time.Sleep(time.Minute)
		if len(all) > 0 {
			r.Errorf("%d messages that another consumer has were delivered", len(all))
		}
		for _, d := range kept[1:] {
			r.must(d.Ack(r.Context()))
		}
		r.put(2_000_000_000)
		select {
		case d := <-all:
			if string(d.Data) != "2000000000" {
				r.Errorf("message %s came, want the new one", d.Data)
			}
		case <-time.After(time.Minute):
			r.Error("no message came, although the claims of the living fit")
		}
	})
}

// TryTake takes all messages of a dead consumer, and then reports that there is none, also if they do not fit into one claim table.
func TestTryTakeDuringARecoveryInParts(t *testing.T) {
	for _, beside := range []bool{false, true} {
		withRig(t, 0, func(r rig) {
			const n = 200
			r.putApart(n)
			dead := r.open(InOrder, true)
			dead.receive(n)
			a, b := r.open(InOrder, false, session.WithMaxRequest(1024)), r.open(InOrder, false, session.WithMaxRequest(1024))
			dead.die()
			for i := range n {
				taker := a
				if beside && i%3 == 0 {
					taker = b
				}
				if data, ok, err := taker.Take(r.Context(), false); !ok || err != nil {
					r.Fatalf("TryTake %d: %q, %v, %v", i, data, ok, err)
				}
			}
			if data, ok, err := a.Take(r.Context(), false); ok || err != nil {
				r.Errorf("TryTake: %q, %v, %v; want nothing", data, ok, err)
			}
		})
	}
}

// Messages that consumers give back, and whose names do not fit into one claim table, come to another consumer all the
// same, each of them once. So do messages of dead consumers in a layout in which each claimed message has an entry.
func TestMessagesGivenBackThatDoNotFit(t *testing.T) {
	ends := map[string]func(c *tester, all []*Delivery){
		"Nack": func(c *tester, all []*Delivery) {
			for _, d := range all {
				if err := d.Nack(c.Context()); err != nil {
					c.Errorf("Nack of %s: %v", d.ID, err)
				}
			}
		},
		"Close": func(c *tester, _ []*Delivery) { c.close() },
		"death": func(c *tester, _ []*Delivery) { c.die() },
	}
	for kind, consumers := range map[*Kind]int{&InOrder: 6, &LikeKazoo: 3} {
		for name, end := range ends {
			t.Run(kind.Prefix+name, func(t *testing.T) {
				withRig(t, 0, func(r rig) {
					const each = 14
					for i := range consumers * each {
						r.must(r.srv.Create(fmt.Sprintf("/q/%s%010d", kind.Prefix, 1_000_000_000+2*i), nil))
					}
					small := session.WithMaxRequest(1024)
					order := ""
					held := make(map[*tester][]*Delivery)
					for range consumers {
						c := r.open(*kind, true, small)
						held[c] = c.receive(each)
						order = c.state().path
					}
					for c, all := range held {
						c.forgetOrder()
						end(c, all)
					}
					a := r.open(*kind, true, small)
					got := make(map[string]bool)
					all := receiveAll(a, false, nil)
					for range consumers * each {
						select {
						case d := <-all:
							if got[d.ID] {
								r.Fatalf("%s came again", d.ID)
							}
							got[d.ID] = true
							r.must(d.Ack(r.Context()))
						case <-time.After(time.Hour):
							r.Fatalf("no message after %d", len(got))
						}
					}
					time.Sleep(time.Minute)
					if st := a.state(); len(all) > 0 || st.needsRecovery() || st.path != order {
						r.Errorf("%d messages are left, and the table of %s, want %s, counts %d of %d deaths", len(all), st.path, order, st.table.recovered, st.removed)
					}
				})
			})
		}
	}
}

// fillTable has a consumer give back n messages, whose names are in the claim table then. It returns this consumer, and
// what another one with small requests has received after a minute and receives from then on.
func (r rig) fillTable(n int) (other *tester, received chan *Delivery) {
	r.Helper()
	r.putApart(n)
	other = r.open(InOrder, true)
	for _, d := range other.receive(n) {
		r.must(d.Nack(r.Context()))
	}
	received = receiveAll(r.open(InOrder, true, session.WithMaxRequest(1024)), false, nil)
	time.Sleep(time.Minute)
	return other, received
}

// A consumer whose requests are too small for the claim table, which consumers with larger requests have filled, waits until
// they have settled messages.
func TestClaimTableThatOthersHaveFilled(t *testing.T) {
	withRig(t, 0, func(r rig) {
		const n = 200
		other, all := r.fillTable(n)
		if len(all) > 0 {
			r.Error("a message was claimed, want no room for it")
		}
		for _, d := range other.receive(n)[1:] {
			r.must(d.Ack(r.Context()))
		}
		r.put(2_000_000_000)
		r.must(other.receive(1)[0].Ack(r.Context())) // this claim removes the entries of the settled messages
		r.put(2_000_000_001)
		select {
		case d := <-all:
			r.must(d.Ack(r.Context()))
		case <-time.After(time.Hour):
			r.Error("no message came, although the claim table has room")
		}
	})
}

// A consumer that may claim no second message beside a large claim table, and keeps the first one, claims more when
// another consumer has made the table smaller.
func TestClaimsBesideATableThatBecomesSmaller(t *testing.T) {
	withRig(t, 0, func(r rig) {
		const n = 45
		other, all := r.fillTable(n)
		kept := len(all)
		if kept == 0 || kept > 3 {
			r.Errorf("%d messages were claimed, want a few", kept)
		}
		for _, d := range other.receive(n) {
			r.must(d.Ack(r.Context()))
		}
		for i := range 10 {
			r.put(2_000_000_000 + i)
		}
		other.forgetOrder()
		r.must(other.receive(1)[0].Ack(r.Context())) // this claim removes the entries of the settled messages
		time.Sleep(time.Minute)
		if len(all) < kept+5 {
			r.Errorf("%d messages were claimed after %d, want most of the 9 that are left", len(all)-kept, kept)
		}
	})
}

// A recovery by a consumer that skips messages frees none of them that another consumer has, and keeps their deliveries.
func TestRecoveryBesideMessagesThatAreSkipped(t *testing.T) {
	withRig(t, 0, func(r rig) {
		const n = 12
		for i := range n + 1 {
			r.must(r.srv.Create(fmt.Sprintf("/q/%s%010d", entryPrefix, 1_000_000_000+2*i), nil))
		}
		small := session.WithMaxRequest(1024)
		holder, dead, b := r.open(LikeKazoo, true), r.open(LikeKazoo, true), r.open(LikeKazoo, true, small)
		for _, ref := range b.pick(n).refs {
			b.v.skip(ref, zk.ErrNoAuth)
		}
		for _, d := range holder.receive(n) {
			r.must(d.Nack(r.Context()))
		}
		kept := holder.receive(n)
		dead.forgetOrder()
		dead.receive(1)
		dead.die()
		r.must(recoverClaims(r.Context(), b.v, b.state()))
		st := b.state()
		for _, d := range kept {
			if e := st.table.entry(d.ref.message); e != (claimEntry{claimed, 1}) {
				r.Errorf("%s is %c after %d deliveries, want claimed after 1", d.ID, e.state, e.deliveries)
			}
		}
		if st.needsRecovery() {
			r.Errorf("%d ledgers were deleted, and the table counts %d", st.removed, st.table.recovered)
		}
	})
}
