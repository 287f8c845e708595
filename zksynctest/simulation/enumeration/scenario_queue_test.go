package enumeration_test

import (
	"context"
	"errors"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

var queueScenarios = queueScenariosOf(queueKinds...)

// queueScenariosOf returns the scenarios of each kind of queue.
func queueScenariosOf(kinds ...queueKind) (all []*scenario) {
	for _, kind := range kinds {
		all = append(all,
			// A puts messages, and B takes them.
			&scenario{name: kind.name + "-take", clients: 2, run: func(s *stage) {
				mb := withQueue(s, kind)
				a, b := s.clients[0], s.clients[1]
				s.together(
					func() { mb.produce(a, "1", "2") },
					func() { b.sleep(soon); mb.takeAll(b) },
				)
			}},
			// A puts messages, and B receives them.
			&scenario{name: kind.name + "-chan", clients: 2, run: func(s *stage) {
				mb := withQueue(s, kind)
				a, b := s.clients[0], s.clients[1]
				s.together(
					func() { mb.produce(a, "1", "2") },
					func() { b.sleep(soon); mb.chanAll(b) },
				)
			}},
			// A puts messages, and B receives them, returns each once with Nack and then
			// acknowledges it.
			&scenario{name: kind.name + "-messages", clients: 2, run: func(s *stage) {
				mb := withQueue(s, kind)
				a, b := s.clients[0], s.clients[1]
				s.together(
					func() { mb.produce(a, "1", "2") },
					func() { b.sleep(soon); mb.settleAll(b, nack) },
				)
			}},
			// B and C wait for messages in the line of idle consumers, and A puts messages.
			&scenario{name: kind.name + "-line", clients: 3, run: func(s *stage) {
				mb := withQueue(s, kind)
				a, b, c := s.clients[0], s.clients[1], s.clients[2]
				s.together(
					func() { a.sleep(while); mb.produce(a, "1", "2") },
					func() { mb.settleAll(b, nack) },
					func() { c.sleep(soon); mb.settleAll(c, nack) },
				)
			}},
			// B cancels a Take that is removing a message, and A gets the message.
			&scenario{name: kind.name + "-abandon", clients: 2, run: func(s *stage) {
				mb := withQueue(s, kind)
				a, b := s.clients[0], s.clients[1]
				s.together(
					func() { a.sleep(while); mb.produce(a, "1"); a.sleep(while); mb.takeAll(a) },
					func() {
						b.sleep(soon)
						var data []byte
						err := b.impatiently("Take", while-soon+13*latency+latency/2, func(ctx context.Context) (err error) {
							data, err = mb.values.of(b).Take(ctx)
							return err
						}, orUnknown)
						if data != nil {
							mb.took(b, data, err)
						}
					},
				)
			}},
			// B closes while it has messages, which return to A.
			&scenario{name: kind.name + "-close", clients: 2, run: func(s *stage) {
				mb := withQueue(s, kind)
				a, b := s.clients[0], s.clients[1]
				s.together(
					func() { mb.produce(a, "1", "2"); a.sleep(while); mb.takeAll(a) },
					func() {
						b.sleep(soon)
						q := mb.values.of(b)
						select {
						case m, ok := <-q.Messages():
							if ok {
								b.stage.say("client 1 has %s, and keeps it", m.Data)
							}
						case <-s.after(while):
						}
						b.sleep(soon)
						_ = b.end("Close", q.Close)
					},
				)
			}},
		)
	}
	for _, kind := range queueKinds[:2] {
		// A puts many messages at once, and B receives them as fast as they come, so that it claims many
		// at a time and removes them together with the next claim.
		all = append(all, &scenario{name: kind.name + "-bulk", clients: 2, run: func(s *stage) {
			mb := withQueue(s, kind)
			mb.produceTogether(s.clients[0], 200)
			mb.chanAll(s.clients[1])
		}})
	}
	return append(all,
		// A's second Put waits until B has made room.
		&scenario{name: "queue-capacity", clients: 2, run: func(s *stage) {
			bounded := queueKinds[0]
			bounded.open = func(s *stage, m *session.Manager) anyQueue {
				return zksync.NewQueue(m, queuePath, s.layout(), zksync.WithCapacity(1))
			}
			mb := withQueue(s, bounded)
			a, b := s.clients[0], s.clients[1]
			s.together(
				func() { mb.produce(a, "1", "2") },
				func() {
					b.sleep(while)
					mb.takeAll(b)
					// No consumer makes room any more, for no Put that begins later, either.
					for b.gone() && mb.producers.left.Load() > 0 && s.ctx.Err() == nil {
						s.pause(timeout)
						a.cancel(errors.New("there is no consumer"))
					}
				},
			)
		}},
	)
}
