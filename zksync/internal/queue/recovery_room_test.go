package queue

import (
	"slices"
	"testing"
	"time"

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
