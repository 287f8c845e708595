package zksynctest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/internal/bounds"
)

// StartEnsemble starts 1, 3 or 5 endpoints, and fails the test for any other number.
func TestStartEnsembleRefusesOtherSizes(t *testing.T) {
	for _, n := range []int{-1, 0, 2, 4, 6} {
		fake := &fakeTB{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			StartEnsemble(fake, n)
		}()
		<-done
		fake.want(t, "has 1, 3 or 5 servers, not")
	}
}

// Addr of an ensemble fails the test inside a bubble, and InMemory has an address for each endpoint.
func TestEnsembleAddressesInABubble(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		e := StartEnsemble(t, 3)
		if got := e.InMemory(); got != "127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183" {
			t.Errorf("%s", got)
		}
		fake := &fakeTB{TB: t}
		e.tb = fake
		done := make(chan struct{})
		go func() {
			defer close(done)
			e.Servers()
		}()
		<-done
		fake.want(t, "would stop its clock")
	})
}

// WaitLeader and WaitReady fail the test at their timeout.
func TestWaitsThatEndInVain(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		e := StartEnsemble(t, 3)
		e.Kill(1)
		e.Kill(2)
		fake := &fakeTB{TB: t}
		e.tb = fake
		if n := e.WaitLeader(); n != 0 {
			t.Errorf("%d leads", n)
		}
		fake.want(t, "wait for a leader: not within 1m0s")
		e.WaitReady()
		fake.want(t, "wait for all endpoints to serve: not within 1m0s")
		e.Start(1) // waits for the election
		if n := e.Leader(); n != 3 {
			t.Errorf("%d leads", n)
		}
		e.tb = t
	})
}

// Depose fails the test if there is no leader.
func TestDeposeWithoutALeader(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		e := StartEnsemble(t, 3)
		e.Pause(3)
		fake := &fakeTB{TB: t}
		e.tb = fake
		if n := e.Depose(); n != 0 {
			t.Errorf("endpoint %d was deposed", n)
		}
		fake.want(t, "depose the leader: there is none")
		e.tb = t
	})
}

// Addr panics for an unknown number as the other methods do, with the valid numbers.
func TestAddrOfAnUnknownEndpoint(t *testing.T) {
	e := StartEnsemble(t, 3)
	for _, i := range []int{-1, 0, 4} {
		func() {
			defer func() {
				if told := fmt.Sprint(recover()); !strings.Contains(told, fmt.Sprintf("no endpoint %d, they are numbered from 1 to 3", i)) {
					t.Errorf("Addr(%d): %s", i, told)
				}
			}()
			e.Addr(i)
		}()
	}
}
