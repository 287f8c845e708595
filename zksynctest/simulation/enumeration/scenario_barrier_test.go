package enumeration_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// A roundJudge checks a round of a double barrier of two: neither passes Enter before
// both have come, and neither passes Leave before both have left.
type roundJudge struct {
	s          *stage
	came, left atomic.Int64
	failed     atomic.Bool // a participant has not gone through the round
	early      atomic.Int64
}

// meet takes part in the round.
func (r *roundJudge) meet(c *client, b *zksync.DoubleBarrier, stay time.Duration) {
	r.came.Add(1)
	if err := c.do("Enter", b.Enter); err != nil {
		r.failed.Store(true)
		return
	}
	if n := r.came.Load(); n < 2 {
		r.s.fail("client %d: Enter returned before the other had come", c.number)
	}
	c.sleep(stay)
	r.left.Add(1)
	if err := c.do("Leave", b.Leave, orLost); err != nil {
		r.failed.Store(true)
	} else if r.left.Load() < 2 {
		r.early.Add(1)
	}
}

// over checks the round when both have gone: a participant leaves before the other only
// if the other is lost.
func (r *roundJudge) over() {
	if r.early.Load() > 0 && !r.failed.Load() {
		r.s.fail("a Leave returned before the other participant had left")
	}
}

// alone ends the call of a participant whose partner has gone for long. That happens
// only if a call of the partner was ended, or if a session was lost: the participant
// is then in the round after.
func (r *roundJudge) alone(c *client, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-time.After(5 * timeout):
	}
	if r.s.harm()&(loses|cancels|closes) == 0 {
		r.s.fail("client %d waits in vain for a partner that has gone through the round", c.number)
	}
	c.cancel(errors.New("the partner has gone"))
}

var barrierScenarios = []*scenario{
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
				if err := b.do("Wait", gates.of(b).Wait); err == nil && closed && !removing.Load() {
					s.fail("client 1: Wait returned while the gate was closed")
				}
			},
			func() { s.pause(timeout); s.reopenGate(a, path) },
		)
	}},
	// Two participants meet, and part.
	{name: "doublebarrier", clients: 2, run: func(s *stage) {
		const path = "/barriers/b"
		a, b := s.clients[0], s.clients[1]
		parties := valuesOf(func(_ *client, m *session.Manager) *zksync.DoubleBarrier {
			return zksync.NewDoubleBarrier(m, path, 2)
		})
		s.probeMeeting(path)
		r := &roundJudge{s: s}
		endA, endB := make(chan struct{}), make(chan struct{})
		s.together(
			func() { r.meet(a, parties.of(a), while); close(endA); r.alone(b, endB) },
			func() { b.sleep(soon); r.meet(b, parties.of(b), soon); close(endB); r.alone(a, endA) },
		)
		r.over()
	}},
}

// reopenGate removes the gate if a fault has kept the client from that.
func (s *stage) reopenGate(c *client, path string) {
	for !c.gone() && s.ctx.Err() == nil {
		if _, there := s.server.Get(path); !there {
			return
		}
		s.pause(timeout)
	}
	_ = s.server.Delete(path)
}

// probeMeeting adds a probe in which two participants of one client meet.
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
