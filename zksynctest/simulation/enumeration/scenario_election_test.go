package enumeration_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// electionStage is the common part of the scenarios of an Election.
type electionStage struct {
	*stage
	judge  *judge
	values *values[*zksync.Election]
}

func withElection(s *stage, opts ...zksync.ElectionOption) *electionStage {
	const path = "/elections/e"
	es := &electionStage{stage: s, judge: s.judge(path, 1, true)}
	es.values = valuesOf(func(c *client, m *session.Manager) *zksync.Election {
		return zksync.NewElection(m, path, append([]zksync.ElectionOption{s.layout(), zksync.WithID(fmt.Sprint("node-", c.number))}, opts...)...)
	})
	s.probeLock("leadership",
		func(ctx context.Context, c *client) error { _, err := es.values.of(c).Campaign(ctx); return err },
		func(c *client) error { return es.values.of(c).Resign() })
	return es
}

func (es *electionStage) campaign(c *client, stay time.Duration) {
	e := es.values.of(c)
	if h := c.hold(es.judge, 1, "Campaign", e.Campaign); h != nil {
		h.keep(stay)
		h.release("Resign", e.Resign)
	}
}

// lead leads with Run until the work has completed once without a loss.
func (es *electionStage) lead(c *client, stay time.Duration) {
	e := es.values.of(c)
	worked := false
	err := c.do("Run", func(ctx context.Context) error {
		return e.Run(ctx, func(held context.Context) error {
			token, _ := zksync.Token(held)
			h := &hold{judge: es.judge, client: c, call: ctx, ctx: held, units: 1, token: token, since: time.Now()}
			es.judge.granted(h)
			c.sleep(stay)
			es.judge.mu.Lock()
			h.released = true
			es.judge.mu.Unlock()
			worked = held.Err() == nil
			return nil
		})
	}, orCause)
	if err == nil && !worked {
		es.fail("client %d: Run returned nil, though no work was done under leadership", c.number)
	}
}

var electionScenarios = []*scenario{
	// B leads after A.
	{name: "election-handover", clients: 2, pairs: true, run: func(s *stage) {
		es := withElection(s)
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { es.campaign(a, while) },
			func() { b.sleep(soon); es.campaign(b, soon) },
		)
	}},
	// B's Run works after A's.
	{name: "election-run", clients: 2, run: func(s *stage) {
		es := withElection(s)
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { es.lead(a, while) },
			func() { b.sleep(soon); es.lead(b, soon) },
		)
	}},
	// B observes the leader, and sees A become leader and resign.
	{name: "election-observe", clients: 2, run: func(s *stage) {
		es := withElection(s)
		a, b := s.clients[0], s.clients[1]
		over := make(chan struct{})
		s.together(
			func() { a.sleep(soon); es.campaign(a, while); close(over) },
			func() {
				_ = b.do("Leader", func(ctx context.Context) error {
					_, err := es.values.of(b).Leader(ctx)
					return err
				}, or(zksync.ErrNoLeader))
				b.follow("Observe", func(ctx context.Context) (func() error, bool) {
					stream := es.values.of(b).Observe(ctx)
					return stream.Err, until(b, stream.Events(), over, func(c zksync.Candidate) bool { return c.ID == "" })
				})
			},
		)
	}},
}

var byEphemeral = zksync.WithLayout(zksync.LayoutEphemeral)

// ephemeralElectionScenarios are elections with one ephemeral znode.
var ephemeralElectionScenarios = []*scenario{
	// B leads after A.
	{name: "election-ephemeral-handover", clients: 2, run: func(s *stage) {
		es := withElection(s, byEphemeral)
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { es.campaign(a, while) },
			func() { b.sleep(soon); es.campaign(b, soon) },
		)
	}},
	// Two values of A's Manager, with one id, lead one after the other.
	{name: "election-ephemeral-siblings", clients: 1, run: func(s *stage) {
		es := withElection(s, byEphemeral)
		a := s.clients[0]
		sibling := valuesOf(func(_ *client, m *session.Manager) *zksync.Election {
			return zksync.NewElection(m, "/elections/e", byEphemeral, zksync.WithID("node-0"))
		})
		s.together(
			func() { es.campaign(a, soon) },
			func() {
				e := sibling.of(a)
				if h := a.hold(es.judge, 1, "Campaign", e.Campaign); h != nil {
					h.keep(soon)
					h.release("Resign", e.Resign)
				}
			},
		)
	}},
	// B gives up while A leads.
	{name: "election-ephemeral-give-up", clients: 2, run: func(s *stage) {
		es := withElection(s, byEphemeral)
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { es.campaign(a, while) },
			func() {
				b.sleep(soon)
				_ = b.impatiently("Campaign", soon, func(ctx context.Context) error {
					e := es.values.of(b)
					_, err := e.Campaign(ctx)
					if err == nil {
						err = e.Resign()
					}
					return err
				}, orLost)
			},
		)
	}},
	// B's Run works after A's.
	{name: "election-ephemeral-run", clients: 2, run: func(s *stage) {
		es := withElection(s, byEphemeral)
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { es.lead(a, while) },
			func() { b.sleep(soon); es.lead(b, soon) },
		)
	}},
	// B sees A become leader and resign.
	{name: "election-ephemeral-observe", clients: 2, run: func(s *stage) {
		es := withElection(s, byEphemeral)
		a, b := s.clients[0], s.clients[1]
		over := make(chan struct{})
		s.together(
			func() { a.sleep(soon); es.campaign(a, while); close(over) },
			func() {
				b.follow("Observe", func(ctx context.Context) (func() error, bool) {
					stream := es.values.of(b).Observe(ctx)
					return stream.Err, until(b, stream.Events(), over, func(c zksync.Candidate) bool { return c.ID == "" })
				})
			},
		)
	}},
}

// orCause allows that a call returns only the cause of its context.
func orCause(s *stage, err error) bool {
	return s.harm()&cancels != 0 && errors.Is(err, errSibling)
}

// until reads a channel until over is closed and the newest value satisfies last. It returns false
// if the channel was closed before.
func until[T any](c *client, values <-chan T, over <-chan struct{}, last func(T) bool) bool {
	ended, newest := false, false
	for !ended || !newest {
		select {
		case v, ok := <-values:
			if !ok {
				return false
			}
			c.stage.say("client %d sees %+v", c.number, v)
			newest = last(v)
		case <-over:
			ended, over = true, nil
		}
	}
	return true
}

// follow reads a stream until it has shown the required state, and opens it again if a fault has
// ended its context. read returns the reason for which a stream has ended.
func (c *client) follow(what string, read func(ctx context.Context) (why func() error, seen bool)) {
	for !c.gone() {
		seen := false
		_ = c.do(what, func(ctx context.Context) error {
			var why func() error
			if why, seen = read(ctx); seen {
				return nil
			}
			err := why()
			if err == nil && !c.gone() {
				err = errors.New("the channel was closed without a reason")
			}
			return err
		})
		if seen || c.stage.failed() {
			return
		}
	}
}
