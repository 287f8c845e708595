package enumeration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// A roundJudge checks a round of a double barrier of two: no participant passes Enter before both
// have entered, and none passes Leave before both have left. A participant whose Enter has failed
// does not count.
type roundJudge struct {
	s       *stage
	called  atomic.Int64 // calls of Enter
	came    atomic.Int64 // calls of Enter that have not failed
	entered atomic.Int64
	left    atomic.Int64
	failed  atomic.Bool // a participant has not gone through the round
	early   atomic.Int64
	gaveUp  atomic.Bool // a participant has cancelled its Enter, and may have been counted
}

// meet takes part in the round.
func (r *roundJudge) meet(c *client, b *zksync.DoubleBarrier, stay time.Duration) {
	if r.enter(c, func() error { return c.do("Enter", b.Enter) }) != nil {
		r.failed.Store(true)
		return
	}
	r.part(c, b, stay)
}

// part leaves the round after a while.
func (r *roundJudge) part(c *client, b *zksync.DoubleBarrier, stay time.Duration) {
	c.sleep(stay)
	r.left.Add(1)
	if err := c.do("Leave", b.Leave, orLost); err != nil {
		r.failed.Store(true)
	} else if r.left.Load() < 2 {
		r.early.Add(1)
	}
}

// enter enters the round, or records the failure.
func (r *roundJudge) enter(c *client, enter func() error) error {
	r.called.Add(1)
	r.came.Add(1)
	if err := enter(); err != nil {
		r.came.Add(-1)
		if r.takesBack() && r.entered.Load() > 0 {
			r.s.fail("client %d: Enter failed, though the other has entered by counting it: %v", c.number, err)
		}
		return err
	}
	r.entered.Add(1)
	if r.called.Load() < 2 || r.takesBack() && r.came.Load() < 2 {
		r.s.fail("client %d: Enter returned before the other had come", c.number)
	}
	return nil
}

// takesBack reports whether no other participant may pass because of a participant whose Enter has
// failed. Such a participant is still counted if no server carries out its removal within a second after the
// end of its ctx, and if its session was lost directly after it was counted.
func (r *roundJudge) takesBack() bool {
	return r.s.harm()&(silences|loses|suspends|closes|removes|forbids|stalls) == 0
}

// over checks the round after both participants have left: a participant leaves before the other
// one only if the other one is lost.
func (r *roundJudge) over() {
	// A second fault can hide from Leave that another client has deleted its child.
	hidden := r.s.harm()&removes != 0 && len(r.s.of.strikes) > 1
	if r.early.Load() > 0 && !r.failed.Load() && !hidden {
		r.s.fail("a Leave returned before the other participant had left")
	}
}

// alone ends the call of a participant whose partner left long ago. That happens only if a call of
// the partner was ended or refused, or if a session was lost: the participant is then in the next round.
func (r *roundJudge) alone(c *client, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-time.After(5 * timeout):
	}
	if r.s.harm()&(loses|cancels|closes|refuses|removes|errs|misreads|forbids) == 0 && (!r.gaveUp.Load() || r.takesBack()) {
		r.s.fail("client %d waits in vain for a partner that has gone through the round", c.number)
	}
	c.cancel(errors.New("the partner has gone"))
}

var barrierScenarios = slices.Concat(gateScenarios, givenUpScenarios(4))

// givenUpScenarios returns scenarios in which A cancels its Enter at about the time at which B
// enters, and enters again. Each scenario cancels one frame later than the one before.
func givenUpScenarios(n int) (all []*scenario) {
	for i := range n {
		patience := 2*soon + time.Duration(2+i)*latency + latency/2
		all = append(all, &scenario{name: fmt.Sprint("doublebarrier-abandon-", i), clients: 2, run: func(s *stage) {
			r, of := withDoubleBarrier(s)
			a, b := s.clients[0], s.clients[1]
			endA, endB := make(chan struct{}), make(chan struct{})
			s.together(
				func() {
					impatient := func() error { return a.impatiently("Enter", patience, of(a).Enter) }
					if r.enter(a, impatient) == nil {
						r.part(a, of(a), soon)
					} else {
						r.gaveUp.Store(true)
						a.sleep(soon)
						r.meet(a, of(a), soon)
					}
					close(endA)
					r.alone(b, endB)
				},
				func() { b.sleep(2 * soon); r.meet(b, of(b), soon); close(endB); r.alone(a, endA) },
			)
			r.over()
		}})
	}
	return all
}

var gateScenarios = []*scenario{
	// B waits at the gate until A removes it.
	{name: "barrier", clients: 2, run: func(s *stage) {
		const path = "/gates/g"
		a, b := s.clients[0], s.clients[1]
		gates := valuesOf(func(_ *client, m *session.Manager) *zksync.Barrier { return zksync.NewBarrier(m, path) })
		s.probe("the gate", func(ctx context.Context, c *client) error {
			g := gates.of(c)
			if err := g.Set(ctx); err != nil {
				return err
			}
			if err := g.Remove(ctx); err != nil {
				return err
			}
			return g.Wait(ctx)
		})
		var set, removing atomic.Bool
		s.together(
			func() {
				g := gates.of(a)
				if a.do("Set", g.Set) == nil {
					set.Store(true)
				}
				a.sleep(while)
				removing.Store(true)
				for !a.gone() && a.do("Remove", g.Remove) != nil {
				}
			},
			func() {
				b.sleep(2 * soon)
				closed := set.Load()
				if err := b.do("Wait", gates.of(b).Wait); err == nil && closed && !removing.Load() && s.harm()&wipes == 0 {
					s.fail("client 1: Wait returned while the gate was closed")
				}
			},
			func() { s.pause(timeout); s.reopenGate(a, path) },
		)
	}},
	// Two participants enter and leave.
	{name: "doublebarrier", clients: 2, run: func(s *stage) {
		r, of := withDoubleBarrier(s)
		a, b := s.clients[0], s.clients[1]
		endA, endB := make(chan struct{}), make(chan struct{})
		s.together(
			func() { r.meet(a, of(a), while); close(endA); r.alone(b, endB) },
			func() { b.sleep(soon); r.meet(b, of(b), soon); close(endB); r.alone(a, endA) },
		)
		r.over()
	}},
}

// withDoubleBarrier returns the judge of a round, and a function that returns the participant of a
// client.
func withDoubleBarrier(s *stage) (*roundJudge, func(c *client) *zksync.DoubleBarrier) {
	const path = "/barriers/b"
	s.probeMeeting(path)
	return &roundJudge{s: s}, valuesOf(func(_ *client, m *session.Manager) *zksync.DoubleBarrier {
		return zksync.NewDoubleBarrier(m, path, 2)
	}).of
}

// reopenGate removes the gate if a fault has kept the client from removing it.
func (s *stage) reopenGate(c *client, path string) {
	for !c.gone() && s.ctx.Err() == nil {
		if _, there := s.server.Get(path); !there {
			return
		}
		s.pause(timeout)
	}
	_ = s.server.Delete(path)
}

// probeMeeting adds a probe in which two participants of one client enter and leave.
func (s *stage) probeMeeting(path string) {
	s.probe("a round", func(ctx context.Context, c *client) error {
		other := make(chan error, 1)
		meet := func() error {
			b := zksync.NewDoubleBarrier(c.manager(), path, 2)
			if err := b.Enter(ctx); err != nil {
				return err
			}
			return b.Leave(ctx)
		}
		go func() { other <- meet() }()
		err := meet()
		if e := <-other; err == nil {
			err = e
		}
		return err
	})
}
